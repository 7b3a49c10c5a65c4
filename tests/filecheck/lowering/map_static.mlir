// RUN: cim-opt %s -p 'pattern-to-upmem{unroll=1 tasklets=16 dpus=4}' | filecheck %s

// A length that is known and divides: no leftovers, no loop over rounds, no kernel arguments.
// One input twice and several results of several types: granules are those of the smallest.

// CHECK: upmem.kernel @several_0 tasklets 16 () {
// CHECK-COUNT-3: upmem.mram {{[0-9]+}} :
// CHECK-NOT: upmem.mram {{[0-9]+}} :
// CHECK: upmem.mram_read
// CHECK-NOT: upmem.mram_read
// CHECK: upmem.mram_write
// CHECK: upmem.mram_write
// CHECK: upmem.return
// CHECK: func.func @several
// CHECK-NOT: scf.for
// CHECK-NOT: host_thread
// CHECK: upmem.push %a[{{.*}}] to [[SET:%[a-z0-9_]+]] at 0 count [[N:%[a-z0-9_]+]] stride [[N]] : tensor<1024xi32>
// CHECK: upmem.launch @several_0 on [[SET]]() : () -> !upmem.token
// CHECK: upmem.pull {{.*}} : tensor<1024xi64>
// CHECK: upmem.pull {{.*}} : tensor<1024xi8>
// CHECK: func.return
func.func @several(%a: tensor<1024xi32>) -> (tensor<1024xi64>, tensor<1024xi8>) {
  %y, %z = pattern.map(%p in %a : tensor<1024xi32>, %q in %a : tensor<1024xi32>) -> (tensor<1024xi64>, tensor<1024xi8>) {
    %s = arith.muli %p, %q : i32
    %l = arith.extsi %s : i32 to i64
    %t = arith.trunci %s : i32 to i8
    pattern.yield %l, %t : i64, i8
  }
  func.return %y, %z : tensor<1024xi64>, tensor<1024xi8>
}
