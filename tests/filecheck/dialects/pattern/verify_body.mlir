// RUN: cim-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: 'pattern.map': element function takes 1 arguments, got 2
func.func @f(%a: tensor<8xi32>, %k: i32, %m: memref<8xi32>) {
  %r = "pattern.map"(%a) <{operandSegmentSizes = array<i32: 1, 0>}> ({
  ^body(%x: i32, %y: i32):
    pattern.yield %x : i32
  }) : (tensor<8xi32>) -> tensor<8xi32>
  func.return
}

// -----

// CHECK: 'pattern.map': argument 1 of the element function is i64, expected i32
func.func @f(%a: tensor<8xi32>, %k: i32, %m: memref<8xi32>) {
  %r = "pattern.map"(%a, %k) <{operandSegmentSizes = array<i32: 1, 1>}> ({
  ^body(%x: i32, %y: i64):
    pattern.yield %x : i32
  }) : (tensor<8xi32>, i32) -> tensor<8xi32>
  func.return
}

// -----

// CHECK: 'pattern.window': argument 0 of the element function is tensor<3xi32>, expected tensor<2xi32>
func.func @f(%a: tensor<8xi32>, %k: i32, %m: memref<8xi32>) {
  %r = "pattern.window"(%a) <{operandSegmentSizes = array<i32: 1, 0>, window = 2 : i64}> ({
  ^body(%x: tensor<3xi32>):
    %c = arith.constant 0 : i32
    pattern.yield %c : i32
  }) : (tensor<8xi32>) -> tensor<7xi32>
  func.return
}

// -----

// CHECK: 'pattern.map': element function ends in pattern.yield
func.func @f(%a: tensor<8xi32>, %k: i32, %m: memref<8xi32>) {
  %r = pattern.map(%x in %a : tensor<8xi32>) -> tensor<8xi32> {
    "test.termop"() : () -> ()
  }
  func.return
}

// -----

// CHECK: 'pattern.map': element function is pure, got 'memref.store'
func.func @f(%a: tensor<8xi32>, %k: i32, %m: memref<8xi32>) {
  %r = pattern.map(%x in %a : tensor<8xi32>) shared(%p = %m : memref<8xi32>) -> tensor<8xi32> {
    %z = arith.constant 0 : index
    memref.store %x, %p[%z] : memref<8xi32>
    pattern.yield %x : i32
  }
  func.return
}

// -----

// CHECK: 'pattern.reduce': element function is pure, got 'test.op'
func.func @f(%a: tensor<8xi32>, %k: i32, %m: memref<8xi32>) {
  %r = pattern.reduce(%x in %a : tensor<8xi32>) init(%acc = %k : i32) {
    pattern.yield %acc : i32
  } combine(%l, %r) {
    %c = "test.op"(%l) : (i32) -> i32
    pattern.yield %c : i32
  }
  func.return
}

// -----

// CHECK: 'pattern.map': element function is pure, got 'memref.load'
func.func @f(%a: tensor<8xi32>, %k: i32, %m: memref<8xi32>) {
  %r = pattern.map(%x in %a : tensor<8xi32>) shared(%p = %m : memref<8xi32>) -> tensor<8xi32> {
    %t = arith.constant true
    %y = scf.if %t -> (i32) {
      %z = arith.constant 0 : index
      %v = memref.load %p[%z] : memref<8xi32>
      scf.yield %v : i32
    } else {
      scf.yield %x : i32
    }
    pattern.yield %y : i32
  }
  func.return
}

// -----

// CHECK: 'pattern.group': element function holds no filter: its length would differ by element
func.func @f(%a: tensor<8xi32>, %k: i32, %m: memref<8xi32>) {
  %r = pattern.group<4>(%g in %a : tensor<8xi32>) -> tensor<2xi32> {
    %y, %n = pattern.filter(%x in %g : tensor<4xi32>) -> (tensor<?xi32>, index) {
      %t = arith.constant true
      pattern.yield %t, %x : i1, i32
    }
    %c = arith.constant 0 : i32
    pattern.yield %c : i32
  }
  func.return
}

// -----

// CHECK: Operation using value defined out of its IsolatedFromAbove parent
func.func @f(%a: tensor<8xi32>, %k: i32, %m: memref<8xi32>) {
  %r = pattern.map(%x in %a : tensor<8xi32>) -> tensor<8xi32> {
    %y = arith.addi %x, %k : i32
    pattern.yield %y : i32
  }
  func.return
}

// -----

// CHECK: 'pattern.yield' expects parent op
func.func @f(%a: tensor<8xi32>, %k: i32, %m: memref<8xi32>) {
  "test.op"() ({
    pattern.yield %k : i32
  }) : () -> ()
  func.return
}
