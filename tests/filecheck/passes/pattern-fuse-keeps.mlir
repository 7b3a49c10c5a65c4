// RUN: cim-opt %s -p pattern-fuse | filecheck %s

// What is returned is computed once.
// CHECK-LABEL: func.func @returned
// CHECK-NEXT: %m = pattern.map
// CHECK: %r = pattern.reduce(%x in %m : tensor<?xi32>)
func.func @returned(%a: tensor<?xi32>, %k: i32) -> (tensor<?xi32>, i32) {
  %m = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32> {
    %p = arith.muli %x, %x : i32
    pattern.yield %p : i32
  }
  %r = pattern.reduce(%x in %m : tensor<?xi32>) init(%acc = %k : i32) {
    %s = arith.addi %acc, %x : i32
    pattern.yield %s : i32
  }
  func.return %m, %r : tensor<?xi32>, i32
}

// No neutral element is known, and there is no combine region whose init is one by contract.
// CHECK-LABEL: func.func @unknown_neutral
// CHECK-NEXT: %m = pattern.map
// CHECK: %r = pattern.reduce(%x in %m : tensor<?xi32>)
func.func @unknown_neutral(%a: tensor<?xi32>, %k: i32) -> i32 {
  %m = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32> {
    %p = arith.muli %x, %x : i32
    pattern.yield %p : i32
  }
  %r = pattern.reduce(%x in %m : tensor<?xi32>) init(%acc = %k : i32) {
    pattern.yield %x : i32
  }
  func.return %r : i32
}

// The same with a combine region: it stays as it is.
// CHECK-LABEL: func.func @contract
// CHECK-NEXT: %r = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %k : i32) {
// CHECK-NEXT: %p = arith.muli %x, %x : i32
// CHECK-NEXT: pattern.yield %p : i32
// CHECK-NEXT: } combine(%l, %o) {
// CHECK-NEXT: pattern.yield %o : i32
func.func @contract(%a: tensor<?xi32>, %k: i32) -> i32 {
  %m = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32> {
    %p = arith.muli %x, %x : i32
    pattern.yield %p : i32
  }
  %r = pattern.reduce(%x in %m : tensor<?xi32>) init(%acc = %k : i32) {
    pattern.yield %x : i32
  } combine(%l, %o) {
    pattern.yield %o : i32
  }
  func.return %r : i32
}

// Known and unknown neutral elements do not mix: 10 would be taken for neutral.
// CHECK-LABEL: func.func @mixed
// CHECK: %r = pattern.reduce
// CHECK: %s = pattern.reduce
func.func @mixed(%a: tensor<?xi32>, %k: i32) -> (i32, i32) {
  %ten = arith.constant 10 : i32
  %r = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %k : i32) {
    pattern.yield %x : i32
  } combine(%l, %o) {
    pattern.yield %o : i32
  }
  %s = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %ten : i32) {
    %t = arith.addi %acc, %x : i32
    pattern.yield %t : i32
  }
  func.return %r, %s : i32, i32
}

// A combine region takes no shared operands.
// CHECK-LABEL: func.func @shared_fold
// CHECK-NEXT: %m = pattern.map
// CHECK: %r = pattern.reduce(%x in %m : tensor<?xi32>)
func.func @shared_fold(%a: tensor<?xi32>, %k: i32) -> i32 {
  %m = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32> {
    %p = arith.muli %x, %x : i32
    pattern.yield %p : i32
  }
  %r = pattern.reduce(%x in %m : tensor<?xi32>) init(%acc = %k : i32) shared(%c = %k : i32) {
    %s = arith.addi %acc, %x : i32
    %t = arith.minsi %s, %c : i32
    pattern.yield %t : i32
  }
  func.return %r : i32
}

// Each element would be computed once a window.
// CHECK-LABEL: func.func @before_window
// CHECK-NEXT: %m = pattern.map
// CHECK: %r = pattern.window<2>(%w in %m : tensor<?xi32>)
func.func @before_window(%a: tensor<?xi32>) -> tensor<?xi32> {
  %m = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32> {
    %p = arith.muli %x, %x : i32
    pattern.yield %p : i32
  }
  %r = pattern.window<2>(%w in %m : tensor<?xi32>) -> tensor<?xi32> {
    %z = arith.constant 1 : index
    %x = tensor.extract %w[%z] : tensor<2xi32>
    pattern.yield %x : i32
  }
  func.return %r : tensor<?xi32>
}

// A map that is read whole, by every element, is no producer.
// CHECK-LABEL: func.func @read_as_shared
// CHECK-NEXT: %m = pattern.map
// CHECK: %r = pattern.map(%x in %m : tensor<8xi32>) shared(%t = %m : tensor<8xi32>)
func.func @read_as_shared(%a: tensor<8xi32>) -> tensor<8xi32> {
  %m = pattern.map(%x in %a : tensor<8xi32>) -> tensor<8xi32> {
    %p = arith.muli %x, %x : i32
    pattern.yield %p : i32
  }
  %r = pattern.map(%x in %m : tensor<8xi32>) shared(%t = %m : tensor<8xi32>) -> tensor<8xi32> {
    %z = arith.constant 1 : index
    %y = tensor.extract %t[%z] : tensor<8xi32>
    %q = arith.addi %x, %y : i32
    pattern.yield %q : i32
  }
  func.return %r : tensor<8xi32>
}

// A map of five operations is computed once for its two consumers.
// CHECK-LABEL: func.func @costly
// CHECK-NEXT: %m = pattern.map
// CHECK: pattern.scan(%x in %m : tensor<?xi32>)
// CHECK: pattern.filter(%x in %m : tensor<?xi32>)
func.func @costly(%a: tensor<?xi32>, %k: i32) -> (tensor<?xi32>, index) {
  %m = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32> {
    %p = arith.muli %x, %x : i32
    %q = arith.muli %p, %x : i32
    %r = arith.muli %q, %x : i32
    %s = arith.muli %r, %x : i32
    %t = arith.muli %s, %x : i32
    pattern.yield %t : i32
  }
  %r = pattern.scan(%x in %m : tensor<?xi32>) init(%acc = %k : i32) {
    %s = arith.addi %acc, %x : i32
    pattern.yield %s : i32
  }
  %n = pattern.filter(%x in %m : tensor<?xi32>) -> index {
    %z = arith.constant 7 : i32
    %keep = arith.cmpi sgt, %x, %z : i32
    pattern.yield %keep : i1
  }
  func.return %r, %n : tensor<?xi32>, index
}
