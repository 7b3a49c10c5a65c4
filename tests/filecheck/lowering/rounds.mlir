// RUN: cim-opt %s -p 'pattern-to-upmem{unroll=1 machine="%S/small.toml"}' | filecheck %s

// 4 KB of MRAM hold 2 arrays of a few hundred elements: launches in rounds, whose results the
// host collects one after the other. A machine of the user's is written out in the module.

// CHECK: builtin.module attributes {upmem.machine = {
// CHECK-SAME: mram_bytes = 4096 : i64
// CHECK: upmem.kernel @double_0
// CHECK: upmem.mram 0 : memref<[[CAP:[0-9]+]]xi32, #upmem<space mram>>
// CHECK: func.func @double
// CHECK-DAG: [[PER_DPU:%[a-z0-9_]+]] = arith.constant 5000 : index
// CHECK-DAG: [[ROUND:%[a-z0-9_]+]] = arith.constant 506 : index
// CHECK: scf.for [[BASE:%[a-z0-9_]+]] = {{%.+}} to [[PER_DPU]] step [[ROUND]] iter_args([[Y:%[a-z0-9_]+]] =
// CHECK: [[LEFT:%[a-z0-9_]+]] = arith.subi [[PER_DPU]], [[BASE]] : index
// CHECK-NEXT: [[NOW:%[a-z0-9_]+]] = arith.minui [[LEFT]], [[ROUND]] : index
// CHECK: upmem.push %a[
// CHECK: upmem.launch @double_0
// CHECK: upmem.pull {{.*}} into [[Y]][
func.func @double(%a: tensor<10000xi32>) -> tensor<10000xi32> {
  %y = pattern.map(%x in %a : tensor<10000xi32>) -> tensor<10000xi32> {
    %s = arith.addi %x, %x : i32
    pattern.yield %s : i32
  }
  func.return %y : tensor<10000xi32>
}

// Partial results of all rounds have slots of their own.
// CHECK: func.func @sum
// CHECK: tensor.empty() : tensor<40xi32>
// CHECK: scf.for
// CHECK: pattern.reduce(%x in {{%.+}} : tensor<20xi32>)
func.func @sum(%a: tensor<20000xi32>) -> i32 {
  %zero = arith.constant 0 : i32
  %r = pattern.reduce(%x in %a : tensor<20000xi32>) init(%acc = %zero : i32) {
    %s = arith.addi %acc, %x : i32
    pattern.yield %s : i32
  }
  func.return %r : i32
}
