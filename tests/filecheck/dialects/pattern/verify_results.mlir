// RUN: cim-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: 'pattern.map': yields i1 to i64 and f32, got index
func.func @f(%a: tensor<8xi32>) {
  %r = pattern.map(%x in %a : tensor<8xi32>) -> tensor<8xindex> {
    %i = arith.index_cast %x : i32 to index
    pattern.yield %i : index
  }
  func.return
}

// -----

// CHECK: 'pattern.map': has 1 results, but its element function yields 2
func.func @f(%a: tensor<8xi32>) {
  %r = pattern.map(%x in %a : tensor<8xi32>) -> tensor<8xi32> {
    pattern.yield %x, %x : i32, i32
  }
  func.return
}

// -----

// CHECK: 'pattern.map': result 1 is tensor<7xi32>, expected tensor<8xi32>
func.func @f(%a: tensor<8xi32>) {
  %r, %s = pattern.map(%x in %a : tensor<8xi32>) -> (tensor<8xi32>, tensor<7xi32>) {
    pattern.yield %x, %x : i32, i32
  }
  func.return
}

// -----

// CHECK: 'pattern.map': result 0 is tensor<8xi8>, expected tensor<8xi32>
func.func @f(%a: tensor<8xi32>) {
  %r = pattern.map(%x in %a : tensor<8xi32>) -> tensor<8xi8> {
    pattern.yield %x : i32
  }
  func.return
}

// -----

// CHECK: 'pattern.map': result 0 is tensor<?x?xi32>, expected tensor<8xi32>
func.func @f(%a: tensor<8xi32>) {
  %r = pattern.map(%x in %a : tensor<8xi32>) -> tensor<?x?xi32> {
    pattern.yield %x : i32
  }
  func.return
}

// -----

// CHECK: 'pattern.window': result 0 is tensor<8xi32>, expected tensor<7xi32>
func.func @f(%a: tensor<8xi32>) {
  %r = pattern.window<2>(%x in %a : tensor<8xi32>) -> tensor<8xi32> {
    %c = arith.constant 0 : i32
    pattern.yield %c : i32
  }
  func.return
}

// -----

// CHECK: 'pattern.group': result 0 is tensor<8xi32>, expected tensor<2xi32>
func.func @f(%a: tensor<8xi32>) {
  %r = pattern.group<4>(%x in %a : tensor<8xi32>) -> tensor<8xi32> {
    %c = arith.constant 0 : i32
    pattern.yield %c : i32
  }
  func.return
}
