// RUN: cim-opt %s -p upmem-strength-reduce | filecheck %s

// Only the low registers are compared; the bit is tested for 0. A sign keeps both registers.
// CHECK: upmem.kernel @tests
// CHECK: [[Y:%[a-z0-9_]+]] = arith.trunci %x : i64 to i32
// CHECK-NEXT: [[ONE:%[a-z0-9_]+]] = arith.constant 1 : i32
// CHECK-NEXT: [[LOW:%[a-z0-9_]+]] = arith.andi [[Y]], [[ONE]] : i32
// CHECK: [[ZERO:%[a-z0-9_]+]] = arith.constant 0 : i32
// CHECK-NEXT: arith.cmpi ne, [[LOW]], [[ZERO]] : i32
// CHECK: arith.cmpi slt, %x, {{%.+}} : i64
upmem.kernel @tests tasklets 1 () {
  %a = upmem.wram : memref<4xi64, #upmem<space wram>>
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i64
  %x = memref.load %a[%c0] : memref<4xi64, #upmem<space wram>>
  %bit = arith.andi %x, %one : i64
  %odd = arith.cmpi eq, %bit, %one : i64
  scf.if %odd {
    memref.store %one, %a[%c0] : memref<4xi64, #upmem<space wram>>
  }
  %less = arith.cmpi slt, %x, %one : i64
  scf.if %less {
    memref.store %one, %a[%c0] : memref<4xi64, #upmem<space wram>>
  }
  upmem.return
}

// The product keeps all bits of a number of 16: one shift. Its bin is no negative number: no
// second register for the index. A number of 32 bits would lose some, and takes both shifts.
// CHECK: upmem.kernel @bins
// CHECK: [[BIN:%[a-z0-9_]+]] = arith.shrui [[X:%[a-z0-9_]+]], {{%.+}} : i32
// CHECK-NEXT: arith.index_cast [[BIN]] : i32 to index
// CHECK: arith.shli %w, {{%.+}} : i32
// CHECK: arith.shrui
upmem.kernel @bins tasklets 1 () {
  %p = upmem.wram : memref<4xi16, #upmem<space wram>>
  %a = upmem.wram : memref<4096xi32, #upmem<space wram>>
  %c0 = arith.constant 0 : index
  %bins = arith.constant 256 : i32
  %eight = arith.constant 8 : i32
  %depth = arith.constant 12 : i32
  %h = memref.load %p[%c0] : memref<4xi16, #upmem<space wram>>
  %x = arith.extui %h : i16 to i32
  %product = arith.muli %x, %bins : i32
  %bin = arith.shrui %product, %depth : i32
  %wide = arith.extui %bin : i32 to i64
  %at = arith.index_cast %wide : i64 to index
  %w = memref.load %a[%at] : memref<4096xi32, #upmem<space wram>>
  %v = arith.shli %w, %eight : i32
  %u = arith.shrui %v, %depth : i32
  memref.store %u, %a[%at] : memref<4096xi32, #upmem<space wram>>
  upmem.return
}

// The host's operations are left alone.
// CHECK: func.func @host
// CHECK-NEXT: arith.andi
// CHECK-NEXT: arith.cmpi eq, {{.*}} : i64
func.func @host(%x: i64, %one: i64) -> i1 {
  %bit = arith.andi %x, %one : i64
  %odd = arith.cmpi eq, %bit, %one : i64
  func.return %odd : i1
}
