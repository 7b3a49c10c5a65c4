// RUN: cim-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: expected <window>, got 2 sizes
func.func @f(%a: tensor<8xi32>, %k: i32) {
  %r = pattern.window<2, 3>(%x in %a : tensor<8xi32>) -> tensor<7xi32> {
  }
  func.return
}

// -----

// CHECK: expected <window, group>, got 1 sizes
func.func @f(%a: tensor<8xi32>, %k: i32) {
  %r = pattern.window_group<2>(%x in %a : tensor<8xi32>) -> tensor<7xi32> {
  }
  func.return
}

// -----

// CHECK: sizes are at least 1, got 0
func.func @f(%a: tensor<8xi32>, %k: i32) {
  %r = pattern.window<0>(%x in %a : tensor<8xi32>) -> tensor<8xi32> {
  }
  func.return
}

// -----

// CHECK: sizes are at least 1, got -2
func.func @f(%a: tensor<8xi32>, %k: i32) {
  %r = pattern.group<-2>(%x in %a : tensor<8xi32>) -> tensor<8xi32> {
  }
  func.return
}

// -----

// CHECK: '<' expected
func.func @f(%a: tensor<8xi32>, %k: i32) {
  %r = pattern.window(%x in %a : tensor<8xi32>) -> tensor<7xi32> {
  }
  func.return
}

// -----

// CHECK: inputs are 1-D tensors, got i32
func.func @f(%a: tensor<8xi32>, %k: i32) {
  %r = pattern.scan(%x in %k : i32) init(%acc = %k : i32) {
  }
  func.return
}

// -----

// CHECK: inputs are 1-D tensors, got tensor<2x4xi32>
func.func @f(%a: tensor<8xi32>, %k: i32) {
  %r = pattern.map(%x in %a : tensor<2x4xi32>) -> tensor<8xi32> {
  }
  func.return
}

// -----

// CHECK: combine takes 2 arguments, got 1
func.func @f(%a: tensor<8xi32>, %k: i32) {
  %r = pattern.reduce(%x in %a : tensor<8xi32>) init(%acc = %k : i32) {
    pattern.yield %x : i32
  } combine(%l) {
  }
  func.return
}

// -----

// CHECK: Expected 'in'
func.func @f(%a: tensor<8xi32>, %k: i32) {
  %r = pattern.map(%x of %a : tensor<8xi32>) -> tensor<8xi32> {
  }
  func.return
}

// -----

// CHECK: Expected ':'
func.func @f(%a: tensor<8xi32>, %k: i32) {
  %r = pattern.map(%x in %a) -> tensor<8xi32> {
  }
  func.return
}

// -----

// CHECK: Expected '->'
func.func @f(%a: tensor<8xi32>, %k: i32) {
  %r = pattern.map(%x in %a : tensor<8xi32>) {
  }
  func.return
}

// -----

// CHECK: Expected 'init'
func.func @f(%a: tensor<8xi32>, %k: i32) {
  %r = pattern.reduce(%x in %a : tensor<8xi32>) shared(%l = %k : i32) {
  }
  func.return
}

// -----

// CHECK: Expected '='
func.func @f(%a: tensor<8xi32>, %k: i32) {
  %r = pattern.reduce(%x in %a : tensor<8xi32>) init(%acc in %k : i32) {
  }
  func.return
}

// -----

// CHECK: SSA value %x is already defined
func.func @f(%a: tensor<8xi32>, %k: i32) {
  %r = pattern.map(%x in %a : tensor<8xi32>, %x in %a : tensor<8xi32>) -> tensor<8xi32> {
  }
  func.return
}

// -----

// CHECK: operand is used with type tensor<9xi32>, but has been previously used or defined with type tensor<8xi32>
func.func @f(%a: tensor<8xi32>, %k: i32) {
  %r = pattern.map(%x in %a : tensor<9xi32>) -> tensor<9xi32> {
  }
  func.return
}
