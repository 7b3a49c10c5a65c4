// RUN: cim-opt %s -p upmem-share | filecheck %s

// The kept element is in its register already; the next window starts with what this one ends in.
// CHECK: upmem.kernel @windows
// CHECK: [[X:%[a-z0-9_]+]] = memref.load %a[%i]
// CHECK: [[Y:%[a-z0-9_]+]] = memref.load %a
// CHECK-NOT: memref.load %a
// CHECK: memref.store [[X]], %b
// CHECK: [[Z:%[a-z0-9_]+]] = memref.load %a
// CHECK-NEXT: arith.cmpi ne, [[Y]], [[Z]] : i32
upmem.kernel @windows tasklets 1 (%i: index, %p: index) {
  %a = upmem.wram : memref<64xi32, #upmem<space wram>>
  %b = upmem.wram : memref<64xi32, #upmem<space wram>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = memref.load %a[%i] : memref<64xi32, #upmem<space wram>>
  %1 = arith.addi %i, %c1 : index
  %y = memref.load %a[%1] : memref<64xi32, #upmem<space wram>>
  %keep = arith.cmpi ne, %x, %y : i32
  scf.if %keep {
    %again = memref.load %a[%i] : memref<64xi32, #upmem<space wram>>
    memref.store %again, %b[%p] : memref<64xi32, #upmem<space wram>>
  }
  %c1_1 = arith.constant 1 : index
  %2 = arith.addi %i, %c1_1 : index
  %x_1 = memref.load %a[%2] : memref<64xi32, #upmem<space wram>>
  %3 = arith.addi %2, %c1 : index
  %y_1 = memref.load %a[%3] : memref<64xi32, #upmem<space wram>>
  %keep_1 = arith.cmpi ne, %x_1, %y_1 : i32
  scf.if %keep_1 {
    memref.store %x_1, %b[%c0] : memref<64xi32, #upmem<space wram>>
  }
  upmem.return
}

// What is stored, read from MRAM, or written by others before a barrier, is loaded again.
// CHECK: upmem.kernel @changes
// CHECK-COUNT-5: memref.load %a
upmem.kernel @changes tasklets 2 () {
  %m = upmem.mram 0 : memref<64xi32, #upmem<space mram>>
  %a = upmem.wram shared : memref<64xi32, #upmem<space wram>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %x = memref.load %a[%c0] : memref<64xi32, #upmem<space wram>>
  memref.store %x, %a[%c1] : memref<64xi32, #upmem<space wram>>
  %y = memref.load %a[%c0] : memref<64xi32, #upmem<space wram>>
  upmem.mram_read %m[%c0] to %a[%c0] count %c2 : memref<64xi32, #upmem<space mram>>, memref<64xi32, #upmem<space wram>>
  %z = memref.load %a[%c0] : memref<64xi32, #upmem<space wram>>
  upmem.barrier
  %w = memref.load %a[%c0] : memref<64xi32, #upmem<space wram>>
  %s = scf.for %i = %c0 to %c2 step %c1 iter_args(%t = %w) -> (i32) {
    %v = memref.load %a[%c0] : memref<64xi32, #upmem<space wram>>
    %u = arith.addi %t, %v : i32
    memref.store %u, %a[%i] : memref<64xi32, #upmem<space wram>>
    scf.yield %u : i32
  }
  %r = arith.addi %y, %z : i32
  %q = arith.addi %r, %s : i32
  memref.store %q, %a[%c2] : memref<64xi32, #upmem<space wram>>
  upmem.return
}
