// RUN: cim-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: 'pattern.map': needs at least one input
func.func @f(%a: tensor<8xi32>, %b: tensor<9xi32>, %m: tensor<2x2xi32>, %i: tensor<8xindex>, %k: i32) {
  pattern.map() -> () {
    pattern.yield
  }
  func.return
}

// -----

// CHECK: 'pattern.map': inputs are 1-D tensors, got tensor<2x2xi32>; flatten it
func.func @f(%a: tensor<8xi32>, %b: tensor<9xi32>, %m: tensor<2x2xi32>, %i: tensor<8xindex>, %k: i32) {
  %r = "pattern.map"(%m) <{operandSegmentSizes = array<i32: 1, 0>}> ({
  ^body(%x: i32):
    pattern.yield %x : i32
  }) : (tensor<2x2xi32>) -> tensor<4xi32>
  func.return
}

// -----

// CHECK: 'pattern.map': elements are i1 to i64 and f32, got tensor<8xindex>
func.func @f(%a: tensor<8xi32>, %b: tensor<9xi32>, %m: tensor<2x2xi32>, %i: tensor<8xindex>, %k: i32) {
  %r = pattern.map(%x in %i : tensor<8xindex>) -> tensor<8xindex> {
    pattern.yield %x : index
  }
  func.return
}

// -----

// CHECK: 'pattern.map': inputs have one length, got 8 and 9
func.func @f(%a: tensor<8xi32>, %b: tensor<9xi32>, %m: tensor<2x2xi32>, %i: tensor<8xindex>, %k: i32) {
  %r = pattern.map(%x in %a : tensor<8xi32>, %y in %b : tensor<9xi32>) -> tensor<8xi32> {
    pattern.yield %x : i32
  }
  func.return
}

// -----

// CHECK: operand 'inputs' at position 0 does not verify: i32 should be of base attribute tensor
func.func @f(%a: tensor<8xi32>, %b: tensor<9xi32>, %m: tensor<2x2xi32>, %i: tensor<8xindex>, %k: i32) {
  %r = "pattern.map"(%k) <{operandSegmentSizes = array<i32: 1, 0>}> ({
  ^body(%x: i32):
    pattern.yield %x : i32
  }) : (i32) -> tensor<8xi32>
  func.return
}
