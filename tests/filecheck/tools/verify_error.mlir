// RUN: not cim-opt %s 2>&1 | filecheck %s

func.func @outer() {
  func.return
}
func.func @f() -> i32 {
  func.return
}
// CHECK:     verify_error.mlir:7:3: error: 'func.return': Expected arguments to have the same types as the function output types
// CHECK-NOT: Traceback
