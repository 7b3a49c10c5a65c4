// RUN: cim-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: 'pattern.window': window size is at least 1, got -1
func.func @f(%a: tensor<8xi32>, %b: tensor<9xi32>) {
  %r = "pattern.window"(%a) <{operandSegmentSizes = array<i32: 1, 0>, window = -1 : i64}> ({
  ^body(%x: tensor<1xi32>):
    %c = arith.constant 0 : i32
    pattern.yield %c : i32
  }) : (tensor<8xi32>) -> tensor<8xi32>
  func.return
}

// -----

// CHECK: 'pattern.group_filter': group size is at least 1, got 0
func.func @f(%a: tensor<8xi32>, %b: tensor<9xi32>) {
  %n = "pattern.group_filter"(%a) <{operandSegmentSizes = array<i32: 1, 0>, group = 0 : i64}> ({
  ^body(%x: tensor<1xi32>):
    %c = arith.constant true
    pattern.yield %c : i1
  }) : (tensor<8xi32>) -> index
  func.return
}

// -----

// CHECK: 'pattern.window': window size is at most the length, got 9 over 8 elements
func.func @f(%a: tensor<8xi32>, %b: tensor<9xi32>) {
  %r = pattern.window<9>(%x in %a : tensor<8xi32>) -> tensor<?xi32> {
    %c = arith.constant 0 : i32
    pattern.yield %c : i32
  }
  func.return
}

// -----

// CHECK: 'pattern.group': group size divides the length, got 3 for 8
func.func @f(%a: tensor<8xi32>, %b: tensor<9xi32>) {
  %r = pattern.group<3>(%x in %a : tensor<8xi32>) -> tensor<?xi32> {
    %c = arith.constant 0 : i32
    pattern.yield %c : i32
  }
  func.return
}

// -----

// CHECK: 'pattern.group_filter': group size divides the length, got 5 for 8
func.func @f(%a: tensor<8xi32>, %b: tensor<9xi32>) {
  %n = pattern.group_filter<5>(%x in %a : tensor<8xi32>) -> index {
    %c = arith.constant true
    pattern.yield %c : i1
  }
  func.return
}

// -----

// CHECK: 'pattern.window_group': group size divides the length less window-1, got 3 for 9 - 1 = 8
func.func @f(%a: tensor<8xi32>, %b: tensor<9xi32>) {
  %r = pattern.window_group<2, 3>(%x in %b : tensor<9xi32>) -> tensor<?xi32> {
    %c = arith.constant 0 : i32
    pattern.yield %c : i32
  }
  func.return
}

// -----

// CHECK: 'pattern.window_filter': window size is at most the length, got 9 over 8 elements
func.func @f(%a: tensor<8xi32>, %b: tensor<9xi32>) {
  %n = pattern.window_filter<9>(%x in %a : tensor<8xi32>) -> index {
    %c = arith.constant true
    pattern.yield %c : i1
  }
  func.return
}

// -----

// CHECK: 'pattern.window_group_filter': group size divides the length less window-1, got 4 for 8 - 2 = 6
func.func @f(%a: tensor<8xi32>, %b: tensor<9xi32>) {
  %n = pattern.window_group_filter<3, 4>(%x in %a : tensor<8xi32>) -> index {
    %c = arith.constant true
    pattern.yield %c : i1
  }
  func.return
}
