// RUN: cim-opt %s -p 'pattern-to-upmem' | filecheck %s

// One element fills no granule: nothing for the DPUs, all on the host.

// CHECK-NOT: upmem.kernel
// CHECK-NOT: upmem.alloc
// CHECK: func.func @one
// CHECK: [[R:%[a-z0-9_]+]] = upmem.host_thread -> (tensor<?xi32>) {
// CHECK: pattern.map
// CHECK-NOT: upmem.launch
func.func @one(%a: tensor<1xi32>) -> tensor<1xi32> {
  %y = pattern.map(%x in %a : tensor<1xi32>) -> tensor<1xi32> {
    %s = arith.addi %x, %x : i32
    pattern.yield %s : i32
  }
  func.return %y : tensor<1xi32>
}

// None at all: the initial value.
// CHECK: func.func @none
// CHECK-NOT: upmem.launch
func.func @none(%a: tensor<0xi32>) -> i32 {
  %init = arith.constant 3 : i32
  %y = pattern.reduce(%x in %a : tensor<0xi32>) init(%acc = %init : i32) {
    %s = arith.addi %x, %acc : i32
    pattern.yield %s : i32
  }
  func.return %y : i32
}
