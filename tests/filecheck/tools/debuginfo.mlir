// RUN: cim-opt %s --print-debuginfo | filecheck %s
// RUN: cim-opt %s --print-debuginfo | cim-opt --print-debuginfo | filecheck %s

// CHECK: func.func @f
func.func @f() {
  // CHECK-NEXT: arith.constant 1 : i32 loc("{{.*}}debuginfo.mlir":7:3)
  %a = arith.constant 1 : i32
  // CHECK-NEXT: arith.constant 2 : i32 loc("other.py":5:6)
  %b = arith.constant 2 : i32 loc("other.py":5:6)
  func.return
}
