// RUN: not cim-opt %s 2>&1 | filecheck %s

func.func @f(%a: tensor<8xi32>) {
  // CHECK: located_parse_error.mlir:5:22: error: sizes are at least 1, got 0
  %r = pattern.window<0>(%x in %a : tensor<8xi32>) -> tensor<8xi8> {
    pattern.yield %x : i32
  }
  func.return
}
