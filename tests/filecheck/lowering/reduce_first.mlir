// RUN: cim-opt %s -p 'pattern-to-upmem{unroll=1 tasklets=16 dpus=4}' | filecheck %s

// No neutral element is known: a tasklet starts from the first element of its range, which is
// then skipped; leftovers fold onto what came before.

// CHECK: upmem.kernel @last_0 tasklets 16 () {
// CHECK: upmem.mram_read [[A:%[a-z0-9_]+]][{{.*}}] to [[W:%[a-z0-9_]+]][
// CHECK-NEXT: [[FIRST:%[a-z0-9_]+]] = memref.load [[W]][
// CHECK: scf.for {{.*}} iter_args({{.*}} = [[FIRST]], [[FROM:%[a-z0-9_]+]] = %{{.+}}) -> (i32, index) {
// CHECK: upmem.mram_read [[A]]
// CHECK-NEXT: scf.for {{.*}} = [[FROM]] to
// CHECK: func.func @last
// CHECK: [[TAIL:%[a-z0-9_]+]] = upmem.host_thread -> (tensor<1xi32>) {
// CHECK: [[M:%[a-z0-9_]+]] = pattern.reduce(%x in {{%.+}} : tensor<4xi32>) init(%acc = %init : i32) {
// CHECK: pattern.reduce(%x in [[TAIL]] : tensor<1xi32>) init(%acc = [[M]] : i32) {
func.func @last(%a: tensor<1001xi32>) -> i32 {
  %init = arith.constant 7 : i32
  %r = pattern.reduce(%x in %a : tensor<1001xi32>) init(%acc = %init : i32) {
    pattern.yield %x : i32
  }
  func.return %r : i32
}
