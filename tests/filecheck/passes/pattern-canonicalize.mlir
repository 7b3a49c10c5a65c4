// RUN: cim-opt %s -p canonicalize | filecheck %s

// Unused results and operands go, repeated operands become one.
// CHECK-LABEL: func.func @narrow
// CHECK-NEXT: %r = pattern.map(%x in %a : tensor<?xi32>) shared(%k = %s : i32) -> tensor<?xi32> {
// CHECK-NEXT: %p = arith.muli %x, %k : i32
// CHECK-NEXT: %q = arith.addi %p, %x : i32
// CHECK-NEXT: %t = arith.addi %q, %k : i32
// CHECK-NEXT: pattern.yield %t : i32
func.func @narrow(%a: tensor<?xi32>, %b: tensor<?xi32>, %s: i32, %u: i32) -> tensor<?xi32> {
  %r, %d = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>, %z in %a : tensor<?xi32>)
      shared(%k = %s : i32, %v = %u : i32, %l = %s : i32) -> (tensor<?xi32>, tensor<?xi32>) {
    %p = arith.muli %x, %k : i32
    %q = arith.addi %p, %z : i32
    %t = arith.addi %q, %l : i32
    %dead = arith.subi %y, %v : i32
    pattern.yield %t, %dead : i32, i32
  }
  func.return %r : tensor<?xi32>
}

// The input that alone says how long the result is stays.
// CHECK-LABEL: func.func @keep_length
// CHECK-NEXT: pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<8xi32>) -> tensor<8xi32>
// CHECK: pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32>
func.func @keep_length(%a: tensor<?xi32>, %b: tensor<8xi32>, %c: tensor<?xi32>)
    -> (tensor<8xi32>, tensor<?xi32>) {
  %r = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<8xi32>) -> tensor<8xi32> {
    %p = arith.muli %x, %x : i32
    pattern.yield %p : i32
  }
  %s = pattern.map(%x in %a : tensor<?xi32>, %y in %c : tensor<?xi32>) -> tensor<?xi32> {
    %p = arith.muli %x, %x : i32
    pattern.yield %p : i32
  }
  func.return %r, %s : tensor<8xi32>, tensor<?xi32>
}

// A map of constants keeps one input for its length.
// CHECK-LABEL: func.func @constant_map
// CHECK-NEXT: pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi8>
func.func @constant_map(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi8> {
  %r = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>) -> tensor<?xi8> {
    %c = arith.constant 1 : i8
    pattern.yield %c : i8
  }
  func.return %r : tensor<?xi8>
}

// CHECK-LABEL: func.func @identity
// CHECK-NEXT: func.return %b, %a : tensor<?xi32>, tensor<?xi32>
func.func @identity(%a: tensor<?xi32>, %b: tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) {
  %r, %s = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>)
      -> (tensor<?xi32>, tensor<?xi32>) {
    pattern.yield %y, %x : i32, i32
  }
  func.return %r, %s : tensor<?xi32>, tensor<?xi32>
}

// A result that is partly known otherwise: an input, or another result.
// CHECK-LABEL: func.func @partly_identity
// CHECK-NEXT: %s = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32>
// CHECK: func.return %a, %s, %s
func.func @partly_identity(%a: tensor<?xi32>)
    -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) {
  %r, %s, %t = pattern.map(%x in %a : tensor<?xi32>)
      -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) {
    %y = arith.muli %x, %x : i32
    pattern.yield %x, %y, %y : i32, i32, i32
  }
  func.return %r, %s, %t : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
}

// An identity that tells the length is not one.
// CHECK-LABEL: func.func @more_static
// CHECK-NEXT: pattern.map
func.func @more_static(%a: tensor<?xi32>, %b: tensor<8xi32>) -> tensor<8xi32> {
  %r = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<8xi32>) -> tensor<8xi32> {
    pattern.yield %x : i32
  }
  func.return %r : tensor<8xi32>
}

// Constants go in, except large ones.
// CHECK-LABEL: func.func @constants
// CHECK-NEXT: %big = arith.constant dense<1> : tensor<65xi32>
// CHECK-NEXT: pattern.map(%x in %a : tensor<?xi32>) shared(%h = %big : tensor<65xi32>) -> tensor<?xi32> {
// CHECK-NEXT: %k = arith.constant 3 : i32
// CHECK-NEXT: %t = arith.constant dense<{{.*}}> : tensor<2xi32>
func.func @constants(%a: tensor<?xi32>) -> tensor<?xi32> {
  %three = arith.constant 3 : i32
  %table = arith.constant dense<[5, 6]> : tensor<2xi32>
  %big = arith.constant dense<1> : tensor<65xi32>
  %r = pattern.map(%x in %a : tensor<?xi32>)
      shared(%k = %three : i32, %h = %big : tensor<65xi32>, %t = %table : tensor<2xi32>)
      -> tensor<?xi32> {
    %z = arith.constant 0 : index
    %u = tensor.extract %t[%z] : tensor<2xi32>
    %v = tensor.extract %h[%z] : tensor<65xi32>
    %p = arith.muli %x, %k : i32
    %q = arith.addi %p, %u : i32
    %w = arith.addi %q, %v : i32
    pattern.yield %w : i32
  }
  func.return %r : tensor<?xi32>
}

// CHECK-LABEL: func.func @compose
// CHECK-NEXT: %r = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>) -> tensor<?xi32> {
// CHECK-NEXT: %p = arith.muli %x, %y : i32
// CHECK-NEXT: %q = arith.addi %p, %x : i32
// CHECK-NEXT: pattern.yield %q : i32
func.func @compose(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {
  %m, %unused = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>)
      -> (tensor<?xi32>, tensor<?xi32>) {
    %p = arith.muli %x, %y : i32
    %d = arith.divsi %x, %y : i32
    pattern.yield %p, %d : i32, i32
  }
  %r = pattern.map(%u in %m : tensor<?xi32>, %v in %a : tensor<?xi32>) -> tensor<?xi32> {
    %q = arith.addi %u, %v : i32
    pattern.yield %q : i32
  }
  func.return %r : tensor<?xi32>
}

// An accumulator that no live result depends on goes, with its input.
// CHECK-LABEL: func.func @fold
// CHECK-NEXT: %s = pattern.reduce(%y in %b : tensor<?xi32>) init(%bcc = %k : i32) {
// CHECK-NEXT: %q = arith.maxsi %bcc, %y : i32
// CHECK-NEXT: pattern.yield %q : i32
func.func @fold(%a: tensor<?xi32>, %b: tensor<?xi32>, %k: i32) -> i32 {
  %r, %s = pattern.reduce(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>)
      init(%acc = %k : i32, %bcc = %k : i32) {
    %p = arith.addi %acc, %x : i32
    %q = arith.maxsi %bcc, %y : i32
    pattern.yield %p, %q : i32, i32
  }
  func.return %s : i32
}

// One that a live result depends on stays.
// CHECK-LABEL: func.func @dependent
// CHECK-NEXT: %r, %s = pattern.scan(
func.func @dependent(%a: tensor<?xi32>, %b: tensor<?xi32>, %k: i32) -> tensor<?xi32> {
  %r, %s = pattern.scan(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>)
      init(%acc = %k : i32, %bcc = %k : i32) {
    %p = arith.muli %acc, %x : i32
    %c = arith.muli %x, %bcc : i32
    %q = arith.addi %c, %y : i32
    pattern.yield %p, %q : i32, i32
  }
  func.return %s : tensor<?xi32>
}

// CHECK-LABEL: func.func @combined
// CHECK-NEXT: %s = pattern.reduce(%x in %a : tensor<?xi32>) init(%bcc = %k : i32) {
// CHECK-NEXT: %q = arith.maxsi %bcc, %x : i32
// CHECK-NEXT: pattern.yield %q : i32
// CHECK-NEXT: } combine(%m, %o) {
// CHECK-NEXT: %v = arith.maxsi %m, %o : i32
// CHECK-NEXT: pattern.yield %v : i32
func.func @combined(%a: tensor<?xi32>, %b: tensor<?xi32>, %k: i32) -> i32 {
  %r, %s = pattern.reduce(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>)
      init(%acc = %k : i32, %bcc = %k : i32) {
    %p = arith.addi %acc, %y : i32
    %q = arith.maxsi %bcc, %x : i32
    pattern.yield %p, %q : i32, i32
  } combine(%l, %m, %n, %o) {
    %u = arith.addi %l, %n : i32
    %v = arith.maxsi %m, %o : i32
    pattern.yield %u, %v : i32, i32
  }
  func.return %s : i32
}

// A filter keeps its length; kept vectors without a use go.
// CHECK-LABEL: func.func @filters
// CHECK-NEXT: %n = pattern.filter(%x in %a : tensor<?xi32>) -> index {
// CHECK-NEXT: %z = arith.constant 0 : i32
// CHECK-NEXT: %keep = arith.cmpi sgt, %x, %z : i32
// CHECK-NEXT: pattern.yield %keep : i1
// CHECK: %w, %m = pattern.group_filter<2>(%g in %a : tensor<?xi32>) -> (tensor<?xi32>, index) {
// CHECK: pattern.yield %c, %g : i1, tensor<2xi32>
// CHECK: func.return %n, %w, %w
func.func @filters(%a: tensor<?xi32>, %b: tensor<?xi32>)
    -> (index, tensor<?xi32>, tensor<?xi32>) {
  %y, %n = pattern.filter(%x in %a : tensor<?xi32>, %v in %b : tensor<?xi32>)
      -> (tensor<?xi32>, index) {
    %z = arith.constant 0 : i32
    %keep = arith.cmpi sgt, %x, %z : i32
    pattern.yield %keep, %v : i1, i32
  }
  %w, %u, %m = pattern.group_filter<2>(%g in %a : tensor<?xi32>)
      -> (tensor<?xi32>, tensor<?xi32>, index) {
    %c = arith.constant true
    pattern.yield %c, %g, %g : i1, tensor<2xi32>, tensor<2xi32>
  }
  func.return %n, %w, %u : index, tensor<?xi32>, tensor<?xi32>
}

// Patterns in element functions too.
// CHECK-LABEL: func.func @nested
// CHECK: pattern.reduce(%x in %g : tensor<4xi32>) init(%acc = %z : i32) {
func.func @nested(%a: tensor<?xi32>) -> tensor<?xi32> {
  %r = pattern.group<4>(%g in %a : tensor<?xi32>) -> tensor<?xi32> {
    %z = arith.constant 0 : i32
    %m = pattern.map(%x in %g : tensor<4xi32>) -> tensor<4xi32> {
      pattern.yield %x : i32
    }
    %s = pattern.reduce(%x in %m : tensor<4xi32>) init(%acc = %z : i32) {
      %t = arith.addi %acc, %x : i32
      pattern.yield %t : i32
    }
    pattern.yield %s : i32
  }
  func.return %r : tensor<?xi32>
}

// Without a use, and with arith.extsi inside, a pattern goes.
// CHECK-LABEL: func.func @dead
// CHECK-NEXT: func.return
func.func @dead(%a: tensor<?xi8>) {
  %r = pattern.map(%x in %a : tensor<?xi8>) -> tensor<?xi32> {
    %y = arith.extsi %x : i8 to i32
    pattern.yield %y : i32
  }
  func.return
}

// The first kept vector says what the length counts: two for each group.
// CHECK-LABEL: func.func @group_length
// CHECK-NEXT: %y, %n = pattern.group_filter<2>(%g in %a : tensor<?xi32>) -> (tensor<?xi32>, index) {
// CHECK: %v, %u, %m = pattern.group_filter<2>
// CHECK: %w, %o = pattern.group_filter<2>
// CHECK: pattern.yield %c, %g : i1, tensor<2xi32>
func.func @group_length(%a: tensor<?xi32>) -> (index, tensor<?xi32>, index, tensor<?xi32>) {
  %y, %n = pattern.group_filter<2>(%g in %a : tensor<?xi32>) -> (tensor<?xi32>, index) {
    %c = arith.constant true
    pattern.yield %c, %g : i1, tensor<2xi32>
  }
  %v, %u, %m = pattern.group_filter<2>(%g in %a : tensor<?xi32>)
      -> (tensor<?xi32>, tensor<?xi32>, index) {
    %c = arith.constant true
    %z = arith.constant 0 : index
    %x = tensor.extract %g[%z] : tensor<2xi32>
    pattern.yield %c, %g, %x : i1, tensor<2xi32>, i32
  }
  %w, %t, %o = pattern.group_filter<2>(%g in %a : tensor<?xi32>)
      -> (tensor<?xi32>, tensor<?xi32>, index) {
    %c = arith.constant true
    pattern.yield %c, %g, %g : i1, tensor<2xi32>, tensor<2xi32>
  }
  func.return %n, %u, %o, %t : index, tensor<?xi32>, index, tensor<?xi32>
}
