// RUN: cim-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: Expected integer literal
func.func @f(%x: !simdram.vec<i32>) {
  func.return
}

// -----

// CHECK: widths are 1 to 64 bits, got 0
func.func @f(%x: !simdram.vec<0>) {
  func.return
}

// -----

// CHECK: widths are 1 to 64 bits, got 65
func.func @f(%x: !simdram.vec<65>) {
  func.return
}

// -----

// CHECK: Expected `add`, `sub`
func.func @f(%x: !simdram.vec<8>) {
  %s = simdram.bbop plus(%x, %x) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
  func.return
}

// -----

// CHECK: Expected 'stride'
func.func @f(%a: tensor<8xi8>, %n: index) {
  %x = simdram.transpose %a[%n] count %n : tensor<8xi8> -> !simdram.vec<8>
  func.return
}

// -----

// CHECK: Expected 'complemented'
func.func @f(%x: !simdram.vec<8, inverted>) {
  func.return
}
