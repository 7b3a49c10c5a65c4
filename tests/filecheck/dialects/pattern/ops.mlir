// RUN: cim-opt %s | cim-opt | filecheck %s
// RUN: cim-opt %s --print-op-generic | cim-opt | filecheck %s
// RUN: cim-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

func.func @elements(%a: tensor<8xi32>, %b: tensor<?xf32>, %s: i32, %t: tensor<4xi8>) {
  // CHECK: %c, %d = pattern.map(%x in %a : tensor<8xi32>, %y in %b : tensor<?xf32>)
  // CHECK-SAME: shared(%k = %s : i32, %l = %t : tensor<4xi8>) -> (tensor<8xi32>, tensor<8xf32>)
  // CHECK-SAME: attributes {note = "kept"} {
  // CHECK-NEXT: %p = arith.muli %x, %k : i32
  // CHECK-NEXT: pattern.yield %p, %y : i32, f32
  // GENERIC: "pattern.map"(%a, %b, %s, %t) <{operandSegmentSizes = array<i32: 2, 2>}> ({
  %c, %d = pattern.map(%x in %a : tensor<8xi32>, %y in %b : tensor<?xf32>)
      shared(%k = %s : i32, %l = %t : tensor<4xi8>) -> (tensor<8xi32>, tensor<8xf32>)
      attributes {note = "kept"} {
    %p = arith.muli %x, %k : i32
    pattern.yield %p, %y : i32, f32
  }
  // CHECK: %y, %n = pattern.filter(%x in %a : tensor<8xi32>) shared(%k = %s : i32)
  // CHECK-SAME: -> (tensor<?xi32>, index) {
  // CHECK-NEXT: %keep = arith.cmpi sgt, %x, %k : i32
  // CHECK-NEXT: pattern.yield %keep, %x : i1, i32
  // GENERIC: "pattern.filter"
  %y, %n = pattern.filter(%x in %a : tensor<8xi32>) shared(%k = %s : i32)
      -> (tensor<?xi32>, index) {
    %keep = arith.cmpi sgt, %x, %k : i32
    pattern.yield %keep, %x : i1, i32
  }
  func.return
}

func.func @folds(%a: tensor<?xi32>, %s: i32, %t: tensor<4xi8>) {
  // CHECK: %r = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %s : i32) {
  // CHECK-NEXT: arith.addi
  // CHECK-NEXT: pattern.yield
  // CHECK-NEXT: }
  // GENERIC: "pattern.reduce"(%a, %s) <{operandSegmentSizes = array<i32: 1, 0, 1>}> ({
  %r = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %s : i32) {
    %0 = arith.addi %acc, %x : i32
    pattern.yield %0 : i32
  }
  // CHECK: %h = pattern.reduce(%x in %a : tensor<?xi32>) init(%bins = %t : tensor<4xi8>)
  // CHECK-SAME: shared(%k = %s : i32) {
  // CHECK-NEXT: pattern.yield %bins : tensor<4xi8>
  // CHECK-NEXT: } combine(%l, %m) {
  // CHECK-NEXT: pattern.yield %l : i8
  // GENERIC: "pattern.reduce"(%a, %s, %t) <{operandSegmentSizes = array<i32: 1, 1, 1>}> ({
  %h = pattern.reduce(%x in %a : tensor<?xi32>) init(%bins = %t : tensor<4xi8>)
      shared(%k = %s : i32) {
    pattern.yield %bins : tensor<4xi8>
  } combine(%l, %m) {
    pattern.yield %l : i8
  }
  // CHECK: %c = pattern.scan(%x in %a : tensor<?xi32>) init(%acc = %s : i32) {
  // GENERIC: "pattern.scan"
  %c = pattern.scan(%x in %a : tensor<?xi32>) init(%acc = %s : i32) {
    %0 = arith.addi %acc, %x : i32
    pattern.yield %0 : i32
  }
  // CHECK: %d, %e = pattern.scan exclusive (%x in %a : tensor<?xi32>, %y in %a : tensor<?xi32>)
  // CHECK-SAME: init(%acc = %s : i32, %bcc = %s : i32) {
  // GENERIC: "pattern.scan"{{.*}}exclusive
  %d, %e = pattern.scan exclusive (%x in %a : tensor<?xi32>, %y in %a : tensor<?xi32>)
      init(%acc = %s : i32, %bcc = %s : i32) {
    %0 = arith.addi %acc, %x : i32
    %1 = arith.maxsi %bcc, %y : i32
    pattern.yield %0, %1 : i32, i32
  }
  func.return
}

func.func @slices(%a: tensor<9xi16>, %b: tensor<8xi16>, %d: tensor<?xi16>, %k: i16) {
  // CHECK: %c = pattern.window<2>(%w in %a : tensor<9xi16>) shared(%z = %k : i16) -> tensor<8xi16> {
  // CHECK-NEXT: pattern.yield %z : i16
  // GENERIC: "pattern.window"(%a, %k) <{{.*}}window = 2 : i64
  // GENERIC-NEXT: ^{{.*}}(%w: tensor<2xi16>, %z: i16):
  %c = pattern.window<2>(%w in %a : tensor<9xi16>) shared(%z = %k : i16) -> tensor<8xi16> {
    pattern.yield %z : i16
  }
  // CHECK: %e = pattern.group<4>(%g in %b : tensor<8xi16>) shared(%z = %k : i16) -> tensor<2xi16> {
  // CHECK-NEXT: %r = pattern.reduce(%x in %g : tensor<4xi16>) init(%acc = %z : i16) {
  // GENERIC: "pattern.group"(%b, %k) <{{.*}}group = 4 : i64
  %e = pattern.group<4>(%g in %b : tensor<8xi16>) shared(%z = %k : i16) -> tensor<2xi16> {
    %r = pattern.reduce(%x in %g : tensor<4xi16>) init(%acc = %z : i16) {
      %s = arith.addi %acc, %x : i16
      pattern.yield %s : i16
    }
    pattern.yield %r : i16
  }
  // CHECK: %f = pattern.window_group<2, 4>(%g in %a : tensor<9xi16>) -> tensor<2xi16> {
  // GENERIC: "pattern.window_group"(%a) <{{.*}}group = 4 : i64
  // GENERIC-NEXT: ^{{.*}}(%g: tensor<5xi16>):
  %f = pattern.window_group<2, 4>(%g in %a : tensor<9xi16>) -> tensor<2xi16> {
    %z = arith.constant 4 : index
    %x = tensor.extract %g[%z] : tensor<5xi16>
    pattern.yield %x : i16
  }
  // CHECK: %y, %n = pattern.window_filter<3>(%w in %d : tensor<?xi16>) -> (tensor<?xi16>, index) {
  // GENERIC: "pattern.window_filter"
  %y, %n = pattern.window_filter<3>(%w in %d : tensor<?xi16>) -> (tensor<?xi16>, index) {
    %t = arith.constant true
    pattern.yield %t, %w : i1, tensor<3xi16>
  }
  // CHECK: %m = pattern.group_filter<2>(%g in %d : tensor<?xi16>) -> index {
  // GENERIC: "pattern.group_filter"
  %m = pattern.group_filter<2>(%g in %d : tensor<?xi16>) -> index {
    %t = arith.constant true
    pattern.yield %t : i1
  }
  // CHECK: %u, %v, %l = pattern.window_group_filter<2, 2>(%g in %a : tensor<9xi16>)
  // CHECK-SAME: shared(%z = %k : i16) -> (tensor<?xi16>, tensor<?xi16>, index) {
  // GENERIC: "pattern.window_group_filter"
  %u, %v, %l = pattern.window_group_filter<2, 2>(%g in %a : tensor<9xi16>)
      shared(%z = %k : i16) -> (tensor<?xi16>, tensor<?xi16>, index) {
    %t = arith.constant true
    pattern.yield %t, %g, %z : i1, tensor<3xi16>, i16
  }
  func.return
}
