// RUN: not cim-opt %s --split-input-file 2>&1 | filecheck %s

func.func @good(%a: tensor<8xi32>) -> tensor<8xi32> {
  func.return %a : tensor<8xi32>
}

// -----

func.func @f(%a: tensor<8xi32>) {
  // CHECK: located.mlir:11:3: error: 'pattern.map': result 0 is tensor<8xi8>, expected tensor<8xi32>
  %r = pattern.map(%x in %a : tensor<8xi32>) -> tensor<8xi8> {
    pattern.yield %x : i32
  }
  func.return
}
