// RUN: cim-opt %s -p upmem-strength-reduce | filecheck %s

// The magnitude of a difference is made once for two squares; other products stay.
// CHECK: upmem.kernel @squares
// CHECK: [[D:%[a-z0-9_]+]] = arith.subi %x, %y : i32
// CHECK-NEXT: [[M:%[a-z0-9_]+]] = math.absi [[D]] : i32
// CHECK-NEXT: arith.muli [[M]], [[M]] : i32
// CHECK-NEXT: arith.muli [[M]], [[M]] : i32
// CHECK-NEXT: arith.muli %x, %x : i32
// CHECK-NEXT: arith.muli [[D]], %x : i32
// CHECK-NEXT: [[W:%[a-z0-9_]+]] = arith.addi %v, %v : i64
// CHECK-NEXT: arith.muli [[W]], [[W]] : i64
upmem.kernel @squares tasklets 1 (%x: i32, %y: i32, %v: i64) {
  %d = arith.subi %x, %y : i32
  %s = arith.muli %d, %d : i32
  %t = arith.muli %d, %d : i32
  %a = arith.muli %x, %x : i32
  %b = arith.muli %d, %x : i32
  %w = arith.addi %v, %v : i64
  %q = arith.muli %w, %w : i64
  upmem.return
}

// Zeros above a number that is not negative are not made for an index.
// CHECK: upmem.kernel @indices
// CHECK: [[S:%[a-z0-9_]+]] = arith.shrui %x, %c4 : i32
// CHECK-NEXT: arith.index_cast [[S]] : i32 to index
// CHECK-NEXT: [[Q:%[a-z0-9_]+]] = arith.divui %x, %c4 : i32
// CHECK-NEXT: arith.index_cast [[Q]] : i32 to index
// CHECK-NEXT: [[A:%[a-z0-9_]+]] = arith.andi %x, %c4 : i32
// CHECK-NEXT: [[E:%[a-z0-9_]+]] = arith.extui [[A]] : i32 to i64
// CHECK-NEXT: arith.index_cast [[A]] : i32 to index
// CHECK-NEXT: arith.addi [[E]], [[E]] : i64
// CHECK-NEXT: [[X:%[a-z0-9_]+]] = arith.extui %x : i32 to i64
// CHECK-NEXT: arith.index_cast [[X]] : i64 to index
// CHECK-NEXT: [[N:%[a-z0-9_]+]] = arith.andi %x, %c-4 : i32
// CHECK-NEXT: [[M:%[a-z0-9_]+]] = arith.extui [[N]] : i32 to i64
// CHECK-NEXT: arith.index_cast [[M]] : i64 to index
upmem.kernel @indices tasklets 1 (%x: i32) {
  %c4 = arith.constant 4 : i32
  %c-4 = arith.constant -4 : i32
  %s = arith.shrui %x, %c4 : i32
  %s64 = arith.extui %s : i32 to i64
  %i = arith.index_cast %s64 : i64 to index
  %q = arith.divui %x, %c4 : i32
  %q64 = arith.extui %q : i32 to i64
  %j = arith.index_cast %q64 : i64 to index
  %a = arith.andi %x, %c4 : i32
  %a64 = arith.extui %a : i32 to i64
  %k = arith.index_cast %a64 : i64 to index
  %used = arith.addi %a64, %a64 : i64
  %x64 = arith.extui %x : i32 to i64
  %l = arith.index_cast %x64 : i64 to index
  %n = arith.andi %x, %c-4 : i32
  %n64 = arith.extui %n : i32 to i64
  %m = arith.index_cast %n64 : i64 to index
  upmem.return
}
