// RUN: cim-opt %s -p 'pattern-to-upmem' | filecheck %s

// A name that the module has already is not given to a kernel.

// CHECK: upmem.kernel @f_1 tasklets
// CHECK-NOT: upmem.kernel
// CHECK: func.func @f(
// CHECK: upmem.launch @f_1
// CHECK: func.func @f_0(
func.func @f(%a: tensor<?xi32>) -> tensor<?xi32> {
  %y = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32> {
    %s = arith.addi %x, %x : i32
    pattern.yield %s : i32
  }
  func.return %y : tensor<?xi32>
}

func.func @f_0(%a: i32) -> i32 {
  func.return %a : i32
}
