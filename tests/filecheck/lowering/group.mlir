// RUN: cim-opt %s -p 'pattern-to-upmem{unroll=1 tasklets=16 block=256 dpus=4}' | filecheck %s

// Rows of 8, a shared vector that every DPU gets whole and loads once, a reduction inside.

// CHECK: upmem.kernel @gemv_0 tasklets 16 () {
// CHECK: [[TABLE:%[a-z0-9_]+]] = upmem.mram [[AT:[0-9]+]] : memref<8xi32, #upmem<space mram>>
// CHECK-NEXT: [[V:%[a-z0-9_]+]] = upmem.wram shared : memref<8xi32, #upmem<space wram>>
// CHECK: scf.if
// CHECK-NEXT: upmem.mram_read [[TABLE]][{{.*}}] to [[V]][
// CHECK-NEXT: }
// CHECK-NEXT: upmem.barrier
// CHECK: upmem.mram_read [[A:%[a-z0-9_]+]][{{.*}}] to [[ROWS:%[a-z0-9_]+]][
// CHECK-NEXT: scf.for [[I:%[a-z0-9_]+]] = {{.*}} {
// CHECK-NEXT: [[ROW:%[a-z0-9_]+]] = arith.muli [[I]],
// CHECK-NEXT: [[DOT:%[a-z0-9_]+]] = scf.for [[J:%[a-z0-9_]+]] = {{.*}} -> (i32) {
// CHECK-NEXT: [[AT2:%[a-z0-9_]+]] = arith.addi [[ROW]], [[J]] : index
// CHECK-NEXT: memref.load [[ROWS]][[[AT2]]]
// CHECK-NEXT: memref.load [[V]][[[J]]]
// CHECK: memref.store [[DOT]],
// CHECK: func.func @gemv
// CHECK: upmem.broadcast %v to {{%.+}} at [[AT]] : tensor<8xi32>
// CHECK: upmem.push %a[{{.*}} : tensor<1024xi32>
// CHECK: upmem.pull {{.*}} : tensor<128xi32>
func.func @gemv(%a: tensor<1024xi32>, %v: tensor<8xi32>) -> tensor<128xi32> {
  %y = pattern.group<8>(%s in %a : tensor<1024xi32>) shared(%t = %v : tensor<8xi32>) -> tensor<128xi32> {
    %c = arith.constant 0 : i32
    %r = pattern.reduce(%p in %s : tensor<8xi32>, %q in %t : tensor<8xi32>) init(%acc = %c : i32) {
      %m = arith.muli %p, %q : i32
      %n = arith.addi %acc, %m : i32
      pattern.yield %n : i32
    } combine(%l, %k) {
      %n = arith.addi %l, %k : i32
      pattern.yield %n : i32
    }
    pattern.yield %r : i32
  }
  func.return %y : tensor<128xi32>
}

// Windows of 3 in groups of 4: slices of 6, a halo of 2.
// CHECK: func.func @both
// CHECK-DAG: [[COUNT:%[a-z0-9_]+]] = arith.constant 258 : index
// CHECK-DAG: [[STRIDE:%[a-z0-9_]+]] = arith.constant 256 : index
// CHECK: upmem.push %a[{{.*}} count [[COUNT]] stride [[STRIDE]] : tensor<1026xi32>
func.func @both(%a: tensor<1026xi32>) -> tensor<256xi32> {
  %y = pattern.window_group<3, 4>(%s in %a : tensor<1026xi32>) -> tensor<256xi32> {
    %c5 = arith.constant 5 : index
    %r = tensor.extract %s[%c5] : tensor<6xi32>
    pattern.yield %r : i32
  }
  func.return %y : tensor<256xi32>
}
