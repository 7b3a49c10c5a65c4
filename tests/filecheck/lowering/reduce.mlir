// RUN: cim-opt %s -p 'pattern-to-upmem{unroll=1 tasklets=16 dpus=4}' | filecheck %s

// The accumulator stays in a register, from the neutral element on; tasklet 0 merges what all
// tasklets with work have left, and the host folds the DPUs' partial results onto `init`.

// CHECK: upmem.kernel @sum_0 tasklets 16 () {
// CHECK: [[SLOTS:%[a-z0-9_]+]] = upmem.wram shared : memref<16xi32
// CHECK: [[OUTER:%[a-z0-9_]+]] = scf.for {{.*}} iter_args([[ACC:%[a-z0-9_]+]] = [[ZERO:%[a-z0-9_]+]]) -> (i32) {
// CHECK: upmem.mram_read
// CHECK-NEXT: [[INNER:%[a-z0-9_]+]] = scf.for {{.*}} iter_args([[ACC2:%[a-z0-9_]+]] = [[ACC]]) -> (i32) {
// CHECK-NEXT: [[X:%[a-z0-9_]+]] = memref.load
// CHECK-NEXT: [[S:%[a-z0-9_]+]] = arith.addi [[ACC2]], [[X]] : i32
// CHECK-NEXT: scf.yield [[S]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield [[INNER]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: memref.store [[OUTER]], [[SLOTS]][%tasklet]
// CHECK-NEXT: upmem.barrier
// CHECK-NEXT: [[FIRST:%[a-z0-9_]+]] = arith.cmpi eq, %tasklet,
// CHECK-NEXT: scf.if [[FIRST]] {
// CHECK: scf.for
// CHECK: arith.addi
// CHECK: memref.store
// CHECK-NEXT: upmem.mram_write {{.*}} count {{.*}} : memref<2xi32, #upmem<space wram>>
// CHECK: func.func @sum
// CHECK: %init = arith.constant 7 : i32
// CHECK: [[PARTS:%[a-z0-9_]+]] = upmem.pull
// CHECK: [[EVERY:%[a-z0-9_]+]] = tensor.extract_slice [[PARTS]][0] [4] [2] : tensor<8xi32> to tensor<4xi32>
// CHECK: [[R:%[a-z0-9_]+]] = pattern.reduce(%x in [[EVERY]] : tensor<4xi32>) init(%acc = %init : i32) {
// CHECK: func.return [[R]] : i32
func.func @sum(%a: tensor<1000xi32>) -> i32 {
  %init = arith.constant 7 : i32
  %r = pattern.reduce(%x in %a : tensor<1000xi32>) init(%acc = %init : i32) {
    %s = arith.addi %acc, %x : i32
    pattern.yield %s : i32
  }
  func.return %r : i32
}

// With a combine region, the host merges with that; leftovers come last.
// CHECK: func.func @count
// CHECK: [[TAIL:%[a-z0-9_]+]] = upmem.host_thread -> (i64) {
// CHECK: [[PARTS:%[a-z0-9_]+]] = upmem.pull
// CHECK: [[M:%[a-z0-9_]+]] = upmem.merge_reduce partials([[PARTS]] : tensor<4xi64>) init(%zero : i64) strides [1] -> (i64) {
// CHECK: arith.addi
// CHECK: arith.addi [[M]], [[TAIL]] : i64
func.func @count(%a: tensor<1001xi8>) -> i64 {
  %zero = arith.constant 0 : i64
  %r = pattern.reduce(%x in %a : tensor<1001xi8>) init(%acc = %zero : i64) {
    %one = arith.constant 1 : i64
    %s = arith.addi %acc, %one : i64
    pattern.yield %s : i64
  } combine(%l, %m) {
    %s = arith.addi %l, %m : i64
    pattern.yield %s : i64
  }
  func.return %r : i64
}
