// RUN: cim-opt %s -p 'upmem-unroll{factor=4}' | filecheck %s
// RUN: cim-opt %s -p 'upmem-unroll' | filecheck %s --check-prefix=CHOSEN

// CHECK: upmem.kernel @copy
// CHECK: [[N:%[a-z0-9_]+]] = arith.maxsi %n, {{%.+}} : index
// CHECK: [[WHOLE:%[a-z0-9_]+]] = arith.andi [[N]], {{%.+}} : index
// CHECK: scf.for [[I:%[a-z0-9_]+]] = %c0 to [[WHOLE]] step {{%.+}} {
// CHECK-NEXT: memref.load %a[[[I]]]
// CHECK-NEXT: memref.store {{.*}}, %b[[[I]]]
// CHECK-NEXT: [[I1:%[a-z0-9_]+]] = arith.addi [[I]], {{%.+}} : index
// CHECK-NEXT: memref.load %a[[[I1]]]
// CHECK-NEXT: memref.store {{.*}}, %b[[[I1]]]
// CHECK: arith.addi [[I]]
// CHECK: arith.addi [[I]]
// CHECK: }
// CHECK: scf.for [[J:%[a-z0-9_]+]] = [[WHOLE]] to %n step %c1 {
// CHECK-NEXT: memref.load %a[[[J]]]
// CHECK-NEXT: memref.store {{.*}}, %b[[[J]]]
// CHECK-NEXT: }
// CHECK-NEXT: upmem.return

// The chosen factor is 8: a power of two cuts the rest off with a mask.
// CHOSEN: arith.constant -8 : index
upmem.kernel @copy tasklets 2 (%n: index) {
  %a = upmem.wram : memref<64xi32, #upmem<space wram>>
  %b = upmem.wram : memref<64xi32, #upmem<space wram>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %a[%i] : memref<64xi32, #upmem<space wram>>
    memref.store %x, %b[%i] : memref<64xi32, #upmem<space wram>>
  }
  upmem.return
}

// The accumulator goes from copy to copy; nothing is left of 12 iterations.
// CHECK: upmem.kernel @sum
// CHECK: [[R:%[a-z0-9_]+]] = scf.for {{.*}} iter_args([[S0:%[a-z0-9_]+]] = %zero) -> (i32) {
// CHECK: [[S1:%[a-z0-9_]+]] = arith.addi [[S0]]
// CHECK: [[S2:%[a-z0-9_]+]] = arith.addi [[S1]]
// CHECK: [[S3:%[a-z0-9_]+]] = arith.addi [[S2]]
// CHECK: [[S4:%[a-z0-9_]+]] = arith.addi [[S3]]
// CHECK: scf.yield [[S4]] : i32
// CHECK-NOT: scf.for
// CHECK: memref.store [[R]], %a
upmem.kernel @sum tasklets 2 () {
  %a = upmem.wram : memref<64xi32, #upmem<space wram>>
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c12 = arith.constant 12 : index
  %r = scf.for %i = %c0 to %c12 step %c1 iter_args(%s = %zero) -> (i32) {
    %x = memref.load %a[%i] : memref<64xi32, #upmem<space wram>>
    %t = arith.addi %s, %x : i32
    scf.yield %t : i32
  }
  memref.store %r, %a[%c0] : memref<64xi32, #upmem<space wram>>
  upmem.return
}

// A loop of one iteration is none, so that the loop around it is innermost: its four iterations are
// done at once.
// CHECK: upmem.kernel @nested
// CHECK-NOT: scf.for
// CHECK: memref.load %a[{{%[0-9]+}}]
// CHECK: scf.if
// CHECK: [[J:%[a-z0-9_]+]] = arith.addi {{%[0-9]+}}, {{%[0-9]+}} : index
// CHECK-NEXT: memref.store {{%.+}}, %b[[[J]]]
// CHECK-NOT: scf.for
// CHECK: upmem.return

// CHOSEN: upmem.kernel @nested
// CHOSEN-NOT: scf.for
// CHOSEN: upmem.return
upmem.kernel @nested tasklets 2 () {
  %a = upmem.wram : memref<64xi32, #upmem<space wram>>
  %b = upmem.wram : memref<64xi32, #upmem<space wram>>
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %x = memref.load %a[%i] : memref<64xi32, #upmem<space wram>>
    %positive = arith.cmpi sgt, %x, %zero : i32
    scf.if %positive {
      scf.for %j = %c0 to %c1 step %c1 {
        %k = arith.addi %i, %j : index
        memref.store %x, %b[%k] : memref<64xi32, #upmem<space wram>>
      }
    }
  }
  upmem.return
}
