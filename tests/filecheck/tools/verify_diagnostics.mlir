// RUN: cim-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

func.func @good() {
  func.return
}
// CHECK: func.func @good

// -----

func.func @f() -> i32 {
  func.return
}
// CHECK: Expected arguments to have the same types as the function output types

// -----

func.func @g(%a: i32) {
  %b = arith.addi %a, %missing : i32
  func.return
}
// CHECK: verify_diagnostics.mlir:18:23
// CHECK: value %missing is used but not defined

// -----

func.func @last() {
  func.return
}
// CHECK: func.func @last
