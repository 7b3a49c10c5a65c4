// RUN: cim-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: 'pattern.reduce': needs at least one accumulator
func.func @f(%a: tensor<8xi32>, %k: i32, %t: tensor<4xi32>, %m: tensor<2x2xi32>, %d: tensor<?xi32>, %i: index) {
  "pattern.reduce"(%a) <{operandSegmentSizes = array<i32: 1, 0, 0>}> ({
  ^body(%x: i32):
    pattern.yield
  }) : (tensor<8xi32>) -> ()
  func.return
}

// -----

// CHECK: 'pattern.reduce': element function yields i64, but the accumulators are i32
func.func @f(%a: tensor<8xi32>, %k: i32, %t: tensor<4xi32>, %m: tensor<2x2xi32>, %d: tensor<?xi32>, %i: index) {
  %r = pattern.reduce(%x in %a : tensor<8xi32>) init(%acc = %k : i32) {
    %y = arith.extsi %x : i32 to i64
    pattern.yield %y : i64
  }
  func.return
}

// -----

// CHECK: 'pattern.reduce': accumulators are all scalars or all tensors of one length
func.func @f(%a: tensor<8xi32>, %k: i32, %t: tensor<4xi32>, %m: tensor<2x2xi32>, %d: tensor<?xi32>, %i: index) {
  %r, %s = pattern.reduce(%x in %a : tensor<8xi32>) init(%acc = %k : i32, %bcc = %t : tensor<4xi32>) {
    pattern.yield %acc, %bcc : i32, tensor<4xi32>
  } combine(%l, %m0, %r0, %s0) {
    pattern.yield %l, %m0 : i32, i32
  }
  func.return
}

// -----

// CHECK: 'pattern.reduce': needs a combine region: its accumulators (i32) are not of the inputs' types (i32, i32)
func.func @f(%a: tensor<8xi32>, %k: i32, %t: tensor<4xi32>, %m: tensor<2x2xi32>, %d: tensor<?xi32>, %i: index) {
  %r = pattern.reduce(%x in %a : tensor<8xi32>, %y in %a : tensor<8xi32>) init(%acc = %k : i32) {
    pattern.yield %acc : i32
  }
  func.return
}

// -----

// CHECK: 'pattern.reduce': needs a combine region: its accumulators (tensor<4xi32>) are not of the inputs' types (i32)
func.func @f(%a: tensor<8xi32>, %k: i32, %t: tensor<4xi32>, %m: tensor<2x2xi32>, %d: tensor<?xi32>, %i: index) {
  %r = pattern.reduce(%x in %a : tensor<8xi32>) init(%acc = %t : tensor<4xi32>) {
    pattern.yield %acc : tensor<4xi32>
  }
  func.return
}

// -----

// CHECK: 'pattern.reduce': combine region takes (i32, i32), got (i32, i64)
func.func @f(%a: tensor<8xi32>, %k: i32, %t: tensor<4xi32>, %m: tensor<2x2xi32>, %d: tensor<?xi32>, %i: index) {
  %r = "pattern.reduce"(%a, %k) <{operandSegmentSizes = array<i32: 1, 0, 1>}> ({
  ^body(%acc: i32, %x: i32):
    pattern.yield %x : i32
  }, {
  ^combine(%l: i32, %r: i64):
    pattern.yield %l : i32
  }) : (tensor<8xi32>, i32) -> i32
  func.return
}

// -----

// CHECK: 'pattern.reduce': combine region yields i32, got i32, i32
func.func @f(%a: tensor<8xi32>, %k: i32, %t: tensor<4xi32>, %m: tensor<2x2xi32>, %d: tensor<?xi32>, %i: index) {
  %r = pattern.reduce(%x in %a : tensor<8xi32>) init(%acc = %k : i32) {
    pattern.yield %x : i32
  } combine(%l, %r) {
    pattern.yield %l, %r : i32, i32
  }
  func.return
}

// -----

// CHECK: 'pattern.scan': scan takes scalar accumulators
func.func @f(%a: tensor<8xi32>, %k: i32, %t: tensor<4xi32>, %m: tensor<2x2xi32>, %d: tensor<?xi32>, %i: index) {
  %r = pattern.scan(%x in %a : tensor<8xi32>) init(%acc = %t : tensor<4xi32>) {
    pattern.yield %acc : tensor<4xi32>
  } combine(%l, %r) {
    pattern.yield %l : i32
  }
  func.return
}

// -----

// CHECK: 'pattern.reduce': accumulators hold i1 to i64 and f32, got index
func.func @f(%a: tensor<8xi32>, %k: i32, %t: tensor<4xi32>, %m: tensor<2x2xi32>, %d: tensor<?xi32>, %i: index) {
  %r = pattern.reduce(%x in %a : tensor<8xi32>) init(%acc = %i : index) {
    pattern.yield %acc : index
  } combine(%l, %r) {
    pattern.yield %l : index
  }
  func.return
}

// -----

// CHECK: 'pattern.reduce': tensor accumulators are 1-D of static length, got tensor<2x2xi32>
func.func @f(%a: tensor<8xi32>, %k: i32, %t: tensor<4xi32>, %m: tensor<2x2xi32>, %d: tensor<?xi32>, %i: index) {
  %r = pattern.reduce(%x in %a : tensor<8xi32>) init(%acc = %m : tensor<2x2xi32>) {
    pattern.yield %acc : tensor<2x2xi32>
  } combine(%l, %r) {
    pattern.yield %l : i32
  }
  func.return
}

// -----

// CHECK: 'pattern.reduce': tensor accumulators are 1-D of static length, got tensor<?xi32>
func.func @f(%a: tensor<8xi32>, %k: i32, %t: tensor<4xi32>, %m: tensor<2x2xi32>, %d: tensor<?xi32>, %i: index) {
  %r = pattern.reduce(%x in %a : tensor<8xi32>) init(%acc = %d : tensor<?xi32>) {
    pattern.yield %acc : tensor<?xi32>
  } combine(%l, %r) {
    pattern.yield %l : i32
  }
  func.return
}

// -----

// CHECK: 'pattern.reduce': result 0 is tensor<?xi32>, expected tensor<4xi32>
func.func @f(%a: tensor<8xi32>, %k: i32, %t: tensor<4xi32>, %m: tensor<2x2xi32>, %d: tensor<?xi32>, %i: index) {
  %r = "pattern.reduce"(%a, %t) <{operandSegmentSizes = array<i32: 1, 0, 1>}> ({
  ^body(%acc: tensor<4xi32>, %x: i32):
    pattern.yield %acc : tensor<4xi32>
  }, {
  ^combine(%l: i32, %r: i32):
    pattern.yield %l : i32
  }) : (tensor<8xi32>, tensor<4xi32>) -> tensor<?xi32>
  func.return
}

// -----

// CHECK: 'pattern.scan': result 0 is i32, expected tensor<8xi32>
func.func @f(%a: tensor<8xi32>, %k: i32, %t: tensor<4xi32>, %m: tensor<2x2xi32>, %d: tensor<?xi32>, %i: index) {
  %r = "pattern.scan"(%a, %k) <{operandSegmentSizes = array<i32: 1, 0, 1>}> ({
  ^body(%acc: i32, %x: i32):
    pattern.yield %acc : i32
  }) : (tensor<8xi32>, i32) -> i32
  func.return
}
