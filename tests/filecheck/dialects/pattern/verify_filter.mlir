// RUN: cim-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: 'pattern.filter': filter yields its condition, an i1, first
func.func @f(%a: tensor<8xi32>, %t: tensor<2xi32>) {
  %y, %n = pattern.filter(%x in %a : tensor<8xi32>) -> (tensor<?xi32>, index) {
    pattern.yield %x, %x : i32, i32
  }
  func.return
}

// -----

// CHECK: 'pattern.window_filter': filter yields its condition, an i1, first
func.func @f(%a: tensor<8xi32>, %t: tensor<2xi32>) {
  %n = pattern.window_filter<2>(%x in %a : tensor<8xi32>) -> index {
    pattern.yield
  }
  func.return
}

// -----

// CHECK: 'pattern.filter': filter's last result is the length, an index
func.func @f(%a: tensor<8xi32>, %t: tensor<2xi32>) {
  %y = pattern.filter(%x in %a : tensor<8xi32>) -> tensor<?xi32> {
    %c = arith.constant true
    pattern.yield %c, %x : i1, i32
  }
  func.return
}

// -----

// CHECK: 'pattern.filter': has 0 results, but its element function yields 1
func.func @f(%a: tensor<8xi32>, %t: tensor<2xi32>) {
  %n = pattern.filter(%x in %a : tensor<8xi32>) -> index {
    %c = arith.constant true
    pattern.yield %c, %x : i1, i32
  }
  func.return
}

// -----

// CHECK: 'pattern.filter': result 0 is tensor<8xi32>, expected tensor<?xi32>
func.func @f(%a: tensor<8xi32>, %t: tensor<2xi32>) {
  %y, %n = pattern.filter(%x in %a : tensor<8xi32>) -> (tensor<8xi32>, index) {
    %c = arith.constant true
    pattern.yield %c, %x : i1, i32
  }
  func.return
}

// -----

// CHECK: 'pattern.group_filter': filter keeps scalars, or slices as they came in
func.func @f(%a: tensor<8xi32>, %t: tensor<2xi32>) {
  %y, %n = pattern.group_filter<2>(%x in %a : tensor<8xi32>) shared(%s = %t : tensor<2xi32>)
      -> (tensor<?xi32>, index) {
    %c = arith.constant true
    pattern.yield %c, %s : i1, tensor<2xi32>
  }
  func.return
}

// -----

// CHECK: 'pattern.filter': yields i1 to i64 and f32, got index
func.func @f(%a: tensor<8xi32>, %t: tensor<2xi32>) {
  %y, %n = pattern.filter(%x in %a : tensor<8xi32>) -> (tensor<?xindex>, index) {
    %c = arith.constant true
    %i = arith.index_cast %x : i32 to index
    pattern.yield %c, %i : i1, index
  }
  func.return
}
