// RUN: cim-opt %s -p 'pattern-to-upmem{tasklets=16 dpus=4}' | filecheck %s

// Tasklets scan their ranges from the neutral element and leave totals; the host adds the offsets
// and goes on with the leftovers from what is carried.

// CHECK: upmem.kernel @inclusive_0 tasklets 16 () {
// CHECK: [[LAST:%[a-z0-9_]+]] = scf.for
// CHECK: [[S:%[a-z0-9_]+]] = arith.addi {{.*}} : i32
// CHECK-NEXT: memref.store [[S]]
// CHECK-NEXT: scf.yield [[S]] : i32
// CHECK: upmem.mram_write
// CHECK: memref.store [[LAST]], [[SLOT:%[a-z0-9_]+]][
// CHECK: upmem.mram_write [[SLOT]]
// CHECK-NEXT: upmem.return
// CHECK: func.func @inclusive
// CHECK: [[L:%[a-z0-9_]+]] = upmem.pull {{.*}} : tensor<1000xi32>
// CHECK: [[T:%[a-z0-9_]+]] = upmem.pull {{.*}} : tensor<128xi32>
// CHECK: [[E:%[a-z0-9_]+]] = tensor.extract_slice [[T]][0] [64] [2] : tensor<128xi32> to tensor<64xi32>
// CHECK: [[Y:%[a-z0-9_]+]], [[C:%[a-z0-9_]+]] = upmem.merge_scan locals([[L]] : tensor<1000xi32>) totals([[E]] : tensor<64xi32>) init(%init : i32) tasklets 16 per_dpu
// CHECK-SAME: -> (tensor<1000xi32>) carry(i32) {
// CHECK: upmem.yield
// CHECK: tensor.insert_slice [[Y]]
// CHECK: pattern.scan(%x in {{.*}}) init(%acc = [[C]] : i32) {
// CHECK: tensor.insert_slice
// CHECK: func.return
func.func @inclusive(%a: tensor<1001xi32>) -> tensor<1001xi32> {
  %init = arith.constant 5 : i32
  %y = pattern.scan(%x in %a : tensor<1001xi32>) init(%acc = %init : i32) {
    %s = arith.addi %acc, %x : i32
    pattern.yield %s : i32
  }
  func.return %y : tensor<1001xi32>
}

// CHECK: func.func @exclusive
// CHECK: upmem.merge_scan exclusive locals(
func.func @exclusive(%a: tensor<1000xi32>) -> tensor<1000xi32> {
  %init = arith.constant 5 : i32
  %y = pattern.scan exclusive (%x in %a : tensor<1000xi32>) init(%acc = %init : i32) {
    %s = arith.addi %acc, %x : i32
    pattern.yield %s : i32
  }
  func.return %y : tensor<1000xi32>
}
