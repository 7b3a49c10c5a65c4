// RUN: cim-opt %s -p pattern-fuse | filecheck %s

// CHECK-LABEL: func.func @dot
// CHECK-NEXT: %zero = arith.constant 0 : i32
// CHECK-NEXT: %dot = pattern.reduce(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>)
// CHECK-SAME: init(%acc = %zero : i32) {
// CHECK-NEXT: %m = arith.muli %x, %y : i32
// CHECK-NEXT: %s = arith.addi %acc, %m : i32
// CHECK-NEXT: pattern.yield %s : i32
// CHECK-NEXT: } combine(%l, %r) {
// CHECK-NEXT: arith.addi %l, %r : i32
// CHECK-NEXT: pattern.yield
// CHECK-NEXT: }
// CHECK-NEXT: func.return %dot : i32
func.func @dot(%a: tensor<?xi32>, %b: tensor<?xi32>) -> i32 {
  %zero = arith.constant 0 : i32
  %p = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>) -> tensor<?xi32> {
    %m = arith.muli %x, %y : i32
    pattern.yield %m : i32
  }
  %dot = pattern.reduce(%v in %p : tensor<?xi32>) init(%acc = %zero : i32) {
    %s = arith.addi %acc, %v : i32
    pattern.yield %s : i32
  }
  func.return %dot : i32
}

// A chain, with a constant and a shared operand on the way, into an exclusive scan.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT: %r = pattern.scan exclusive (%x in %a : tensor<?xi32>) init(%acc = %k : i32)
// CHECK-SAME: shared(%c = %k : i32) {
// CHECK-NEXT: %d = arith.constant 3 : i32
// CHECK-NEXT: %p = arith.muli %x, %d : i32
// CHECK-NEXT: %q = arith.addi %p, %c : i32
// CHECK-NEXT: %s = arith.minsi %q, %acc : i32
// CHECK-NEXT: pattern.yield %s : i32
// CHECK-NEXT: } combine(%l, %r_1) {
// CHECK-NEXT: arith.minsi %r_1, %l : i32
func.func @chain(%a: tensor<?xi32>, %k: i32) -> tensor<?xi32> {
  %three = arith.constant 3 : i32
  %m = pattern.map(%x in %a : tensor<?xi32>) shared(%d = %three : i32) -> tensor<?xi32> {
    %p = arith.muli %x, %d : i32
    pattern.yield %p : i32
  }
  %n = pattern.map(%y in %m : tensor<?xi32>) shared(%c = %k : i32) -> tensor<?xi32> {
    %q = arith.addi %y, %c : i32
    pattern.yield %q : i32
  }
  %r = pattern.scan exclusive (%x in %n : tensor<?xi32>) init(%acc = %k : i32) {
    %s = arith.minsi %x, %acc : i32
    pattern.yield %s : i32
  }
  func.return %r : tensor<?xi32>
}

// Into a filter: what it keeps is computed there. Repeated inputs become one.
// CHECK-LABEL: func.func @filter
// CHECK-NEXT: %v, %n = pattern.filter(%x in %a : tensor<?xi32>) -> (tensor<?xi32>, index) {
// CHECK-NEXT: %p = arith.muli %x, %x : i32
// CHECK-NEXT: %keep = arith.cmpi sgt, %p, %x : i32
// CHECK-NEXT: pattern.yield %keep, %p : i1, i32
func.func @filter(%a: tensor<?xi32>) -> (tensor<?xi32>, index) {
  %m = pattern.map(%x in %a : tensor<?xi32>, %y in %a : tensor<?xi32>) -> tensor<?xi32> {
    %p = arith.muli %x, %y : i32
    pattern.yield %p : i32
  }
  %v, %n = pattern.filter(%x in %m : tensor<?xi32>, %y in %a : tensor<?xi32>, %z in %m : tensor<?xi32>)
      -> (tensor<?xi32>, index) {
    %keep = arith.cmpi sgt, %x, %y : i32
    pattern.yield %keep, %z : i1, i32
  }
  func.return %v, %n : tensor<?xi32>, index
}

// Of several results only the used one is computed.
// CHECK-LABEL: func.func @partly_used
// CHECK-NEXT: %r = pattern.map(%x in %a : tensor<8xi32>) -> tensor<8xi32> {
// CHECK-NEXT: %p = arith.muli %x, %x : i32
// CHECK-NEXT: %q = arith.subi %p, %p : i32
// CHECK-NEXT: pattern.yield %q : i32
func.func @partly_used(%a: tensor<8xi32>) -> tensor<8xi32> {
  %m, %n = pattern.map(%x in %a : tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi8>) {
    %p = arith.muli %x, %x : i32
    %t = arith.trunci %x : i32 to i8
    pattern.yield %p, %t : i32, i8
  }
  %r = pattern.map(%u in %m : tensor<8xi32>, %v in %m : tensor<8xi32>) -> tensor<8xi32> {
    %q = arith.subi %u, %v : i32
    pattern.yield %q : i32
  }
  func.return %r : tensor<8xi32>
}

// A window takes in the map after it.
// CHECK-LABEL: func.func @after_window
// CHECK-NEXT: %r = pattern.window<2>(%w in %a : tensor<?xi32>) shared(%c = %k : i32) -> tensor<?xi32> {
// CHECK: %p = arith.muli %x, %c : i32
// CHECK-NEXT: pattern.yield %p : i32
// CHECK-NEXT: }
// CHECK-NEXT: func.return
func.func @after_window(%a: tensor<?xi32>, %k: i32) -> tensor<?xi32> {
  %m = pattern.window<2>(%w in %a : tensor<?xi32>) -> tensor<?xi32> {
    %z = arith.constant 1 : index
    %x = tensor.extract %w[%z] : tensor<2xi32>
    pattern.yield %x : i32
  }
  %r = pattern.map(%x in %m : tensor<?xi32>) shared(%c = %k : i32) -> tensor<?xi32> {
    %p = arith.muli %x, %c : i32
    pattern.yield %p : i32
  }
  func.return %r : tensor<?xi32>
}

// Two consumers each compute a cheap map.
// CHECK-LABEL: func.func @cheap
// CHECK-NEXT: %r = pattern.scan(%x in %a : tensor<?xi32>) init(%acc = %k : i32) {
// CHECK-NEXT: %p = arith.muli %x, %x : i32
// CHECK: %v, %n = pattern.filter(%x in %a : tensor<?xi32>) -> (tensor<?xi32>, index) {
// CHECK-NEXT: %p = arith.muli %x, %x : i32
func.func @cheap(%a: tensor<?xi32>, %k: i32) -> (tensor<?xi32>, tensor<?xi32>) {
  %m = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32> {
    %p = arith.muli %x, %x : i32
    pattern.yield %p : i32
  }
  %r = pattern.scan(%x in %m : tensor<?xi32>) init(%acc = %k : i32) {
    %s = arith.addi %acc, %x : i32
    pattern.yield %s : i32
  }
  %v, %n = pattern.filter(%x in %m : tensor<?xi32>) -> (tensor<?xi32>, index) {
    %z = arith.constant 7 : i32
    %keep = arith.cmpi sgt, %x, %z : i32
    pattern.yield %keep, %x : i1, i32
  }
  func.return %r, %v : tensor<?xi32>, tensor<?xi32>
}

// Two reduces over one costly map: one kernel, the product computed once.
// CHECK-LABEL: func.func @side_by_side
// CHECK-NEXT: %s, %t, %u = pattern.reduce(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>)
// CHECK-SAME: init(%acc = %k : i32, %acc_1 = %k : i32, %acc_2 = %k : i32) {
// CHECK-NEXT: %m = arith.muli %x, %y : i32
// CHECK-NEXT: %p = arith.addi %acc, %m : i32
// CHECK-NEXT: %q = arith.maxsi %acc_1, %m : i32
// CHECK-NEXT: %o = arith.xori %acc_2, %x : i32
// CHECK-NEXT: pattern.yield %p, %q, %o : i32, i32, i32
// CHECK-NEXT: } combine(%l, %l_1, %l_2, %r, %r_1, %r_2) {
// CHECK-NEXT: arith.addi %l, %r : i32
// CHECK-NEXT: arith.maxsi %l_1, %r_1 : i32
// CHECK-NEXT: arith.xori %l_2, %r_2 : i32
func.func @side_by_side(%a: tensor<?xi32>, %b: tensor<?xi32>, %k: i32) -> (i32, i32, i32) {
  %v = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>) -> tensor<?xi32> {
    %m = arith.muli %x, %y : i32
    pattern.yield %m : i32
  }
  %s = pattern.reduce(%x in %v : tensor<?xi32>) init(%acc = %k : i32) {
    %p = arith.addi %acc, %x : i32
    pattern.yield %p : i32
  }
  %t = pattern.reduce(%x in %v : tensor<?xi32>) init(%acc = %k : i32) {
    %q = arith.maxsi %acc, %x : i32
    pattern.yield %q : i32
  }
  %u = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %k : i32) {
    %o = arith.xori %acc, %x : i32
    pattern.yield %o : i32
  }
  func.return %s, %t, %u : i32, i32, i32
}

// CHECK-LABEL: func.func @two_maps
// CHECK-NEXT: %r, %s = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>)
// CHECK-SAME: -> (tensor<?xi32>, tensor<?xi32>) {
// CHECK-NEXT: %p = arith.muli %x, %y : i32
// CHECK-NEXT: %q = arith.subi %x, %y : i32
// CHECK-NEXT: pattern.yield %p, %q : i32, i32
func.func @two_maps(%a: tensor<?xi32>, %b: tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) {
  %r = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>) -> tensor<?xi32> {
    %p = arith.muli %x, %y : i32
    pattern.yield %p : i32
  }
  %s = pattern.map(%y in %b : tensor<?xi32>, %x in %a : tensor<?xi32>) -> tensor<?xi32> {
    %q = arith.subi %x, %y : i32
    pattern.yield %q : i32
  }
  func.return %r, %s : tensor<?xi32>, tensor<?xi32>
}

// The second reduce needs the first one's result: they stay two, in order.
// CHECK-LABEL: func.func @dependent
// CHECK-NEXT: %s = pattern.reduce
// CHECK: %d = arith.addi %s, %k : i32
// CHECK-NEXT: %t = pattern.reduce
func.func @dependent(%a: tensor<?xi32>, %k: i32) -> i32 {
  %s = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %k : i32) {
    %p = arith.addi %acc, %x : i32
    pattern.yield %p : i32
  }
  %d = arith.addi %s, %k : i32
  %t = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %d : i32) {
    %q = arith.maxsi %acc, %x : i32
    pattern.yield %q : i32
  }
  func.return %t : i32
}
