// RUN: cim-opt %s -p 'pattern-to-upmem{unroll=1 tasklets=16 dpus=4}' | filecheck %s --check-prefix=DPU
// RUN: cim-opt %s -p 'pattern-to-upmem{unroll=1 tasklets=16 dpus=4 merge=host}' | filecheck %s

// By default tasklets add up their ranges and leave totals, the host scans the totals of all, and in
// a second launch tasklets scan from where they are told to start. The leftovers go on from the end.

// DPU: upmem.kernel @inclusive_0 tasklets 16 () {
// DPU-NOT: upmem.mram_write {{.*}} count %{{[0-9]+}} :
// DPU: memref.store {{.*}}, [[SLOT:%[a-z0-9_]+]][
// DPU: upmem.mram_write [[SLOT]]
// DPU-NEXT: upmem.return
// DPU: upmem.kernel @inclusive_1 tasklets 16 () {
// DPU: upmem.mram_read %starts_mram[%{{.*}}] to %start[
// DPU: [[START:%[a-z0-9_]+]] = memref.load %start[
// DPU: scf.for {{.*}} iter_args({{.*}} = [[START]]) -> (i32) {
// DPU: [[S:%[a-z0-9_]+]] = arith.addi {{.*}} : i32
// DPU-NEXT: memref.store [[S]], %out_wram
// DPU: upmem.mram_write %out_wram
// DPU: upmem.kernel @exclusive_1
// DPU: scf.for {{.*}} iter_args([[A:%[a-z0-9_]+]] =
// DPU: scf.for {{.*}} iter_args([[B:%[a-z0-9_]+]] = [[A]]) -> (i32) {
// DPU: memref.store [[B]], %out_wram
// DPU: func.func @inclusive
// DPU: upmem.launch @inclusive_0
// DPU: [[T:%[a-z0-9_]+]] = upmem.pull {{.*}} : tensor<128xi32>
// DPU: [[E:%[a-z0-9_]+]] = tensor.extract_slice [[T]][0] [64] [2] : tensor<128xi32> to tensor<64xi32>
// DPU: [[STARTS:%[a-z0-9_]+]] = pattern.scan exclusive (%x in [[E]] : tensor<64xi32>) init(%acc = %init : i32) {
// DPU: upmem.push [[STARTS]]
// DPU: [[LAST:%[a-z0-9_]+]] = tensor.extract [[STARTS]]
// DPU-NEXT: [[TOTAL:%[a-z0-9_]+]] = tensor.extract [[E]]
// DPU-NEXT: [[CARRY:%[a-z0-9_]+]] = arith.addi [[LAST]], [[TOTAL]] : i32
// DPU: upmem.launch @inclusive_1
// DPU: upmem.pull {{.*}} : tensor<1001xi32>
// DPU: pattern.scan(%x in {{.*}}) init(%acc = [[CARRY]] : i32) {
// DPU: tensor.insert_slice
// DPU: func.return

// With merge=host they scan their ranges from the neutral element and leave totals; the host adds the
// offsets.

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
