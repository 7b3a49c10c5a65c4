// RUN: not cim-opt %s 2>&1 | filecheck %s

func.func @f(%a: i32) -> i32 {
  %b = arith.addi %a, %nowhere : i32
  func.return %b : i32
}
// CHECK: undefined_value.mlir:4:23: error: value %nowhere is used but not defined
