// RUN: cim-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: source is a 1-D tensor, got tensor<2x2xi32>
func.func @f(%a: tensor<2x2xi32>, %n: index) {
  %x = simdram.transpose %a[%n] stride %n count %n : tensor<2x2xi32> -> !simdram.vec<32>
  func.return
}

// -----

// CHECK: vertical objects hold integers, got f32
func.func @f(%a: tensor<8xf32>, %n: index) {
  %x = simdram.transpose %a[%n] stride %n count %n : tensor<8xf32> -> !simdram.vec<32>
  func.return
}

// -----

// CHECK: vertical objects hold integers, got index
func.func @f(%a: tensor<8xindex>, %n: index) {
  %x = simdram.transpose %a[%n] stride %n count %n : tensor<8xindex> -> !simdram.vec<32>
  func.return
}

// -----

// CHECK: takes at most the 16 bits of an element, got 17
func.func @f(%a: tensor<8xi16>, %n: index) {
  %x = simdram.transpose %a[%n] stride %n count %n : tensor<8xi16> -> !simdram.vec<17>
  func.return
}

// -----

// CHECK: takes at most the 8 bits of the scalar, got 9
func.func @f(%k: i8, %n: index) {
  %x = simdram.fill %k count %n : i8 -> !simdram.vec<9>
  func.return
}

// -----

// CHECK: takes at most the 8 bits of the scalar, got 9
func.func @f(%x: !simdram.vec<9>, %k: i8) {
  %y = simdram.mul_scalar %x, %k : !simdram.vec<9>, i8 -> !simdram.vec<9>
  func.return
}

// -----

// CHECK: add does not take (8, 8) bits to 9
func.func @f(%x: !simdram.vec<8>) {
  %s = simdram.bbop add(%x, %x) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<9>
  func.return
}

// -----

// CHECK: shl does not take (8) bits to 8
func.func @f(%x: !simdram.vec<8>) {
  %s = simdram.bbop shl(%x) : (!simdram.vec<8>) -> !simdram.vec<8>
  func.return
}

// -----

// CHECK: not does not take (8, 8) bits to 8
func.func @f(%x: !simdram.vec<8>) {
  %s = simdram.bbop not(%x, %x) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
  func.return
}

// -----

// CHECK: lts does not take (8, 8) bits to 8
func.func @f(%x: !simdram.vec<8>) {
  %s = simdram.bbop lts(%x, %x) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
  func.return
}

// -----

// CHECK: eq does not take (8, 7) bits to 1
func.func @f(%x: !simdram.vec<8>, %y: !simdram.vec<7>) {
  %s = simdram.bbop eq(%x, %y) : (!simdram.vec<8>, !simdram.vec<7>) -> !simdram.vec<1>
  func.return
}

// -----

// CHECK: select does not take (8, 8, 8) bits to 8
func.func @f(%x: !simdram.vec<8>) {
  %s = simdram.bbop select(%x, %x, %x) : (!simdram.vec<8>, !simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
  func.return
}

// -----

// CHECK: zext does not take (8) bits to 8
func.func @f(%x: !simdram.vec<8>) {
  %s = simdram.bbop zext(%x) : (!simdram.vec<8>) -> !simdram.vec<8>
  func.return
}

// -----

// CHECK: trunc does not take (8) bits to 9
func.func @f(%x: !simdram.vec<8>) {
  %s = simdram.bbop trunc(%x) : (!simdram.vec<8>) -> !simdram.vec<9>
  func.return
}

// -----

// CHECK: shru_const does not take (8) bits to 4
func.func @f(%x: !simdram.vec<8>) {
  %s = simdram.bbop shru_const(%x) amount 1 : (!simdram.vec<8>) -> !simdram.vec<4>
  func.return
}

// -----

// CHECK: shifts by a constant have an amount, and nothing else has
func.func @f(%x: !simdram.vec<8>) {
  %s = simdram.bbop shl_const(%x) : (!simdram.vec<8>) -> !simdram.vec<8>
  func.return
}

// -----

// CHECK: shifts by a constant have an amount, and nothing else has
func.func @f(%x: !simdram.vec<8>) {
  %s = simdram.bbop copy(%x) amount 1 : (!simdram.vec<8>) -> !simdram.vec<8>
  func.return
}

// -----

// CHECK: shifts by 0 or more, got -1
func.func @f(%x: !simdram.vec<8>) {
  %s = simdram.bbop shl_const(%x) amount -1 : (!simdram.vec<8>) -> !simdram.vec<8>
  func.return
}

// -----

// CHECK: dest is a 1-D tensor, got tensor<2x2xi8>
func.func @f(%x: !simdram.vec<8>, %a: tensor<2x2xi8>, %n: index) {
  %r = simdram.read %x into %a[%n] stride %n : !simdram.vec<8>, tensor<2x2xi8>
  func.return
}

// -----

// CHECK: an object of 7 bits does not fit elements of 8
func.func @f(%x: !simdram.vec<7>, %a: tensor<8xi8>, %n: index) {
  %r = simdram.read %x into %a[%n] stride %n : !simdram.vec<7>, tensor<8xi8>
  func.return
}

// -----

// CHECK: data is a 1-D tensor, got tensor<2x2xi8>
func.func @f(%a: tensor<2x2xi8>, %m: tensor<4xi1>) {
  %r = simdram.compact %a by %m scale 1 : tensor<2x2xi8>, tensor<4xi1> -> tensor<?xi8>
  func.return
}

// -----

// CHECK: mask is a 1-D tensor, got tensor<2x2xi1>
func.func @f(%a: tensor<4xi8>, %m: tensor<2x2xi1>) {
  %r = simdram.compact %a by %m scale 1 : tensor<4xi8>, tensor<2x2xi1> -> tensor<?xi8>
  func.return
}

// -----

// CHECK: mask holds i1
func.func @f(%a: tensor<4xi8>) {
  %r = simdram.compact %a by %a scale 1 : tensor<4xi8>, tensor<4xi8> -> tensor<?xi8>
  func.return
}

// -----

// CHECK: scale is at least 1, got 0
func.func @f(%a: tensor<4xi8>, %m: tensor<4xi1>) {
  %r = simdram.compact %a by %m scale 0 : tensor<4xi8>, tensor<4xi1> -> tensor<?xi8>
  func.return
}

// -----

// CHECK: result has the elements of data
func.func @f(%a: tensor<4xi8>, %m: tensor<4xi1>) {
  %r = simdram.compact %a by %m scale 1 : tensor<4xi8>, tensor<4xi1> -> tensor<?xi16>
  func.return
}

// -----

// CHECK: result is a 1-D tensor, got tensor<2x2xi8>
func.func @f(%a: tensor<4xi8>, %m: tensor<4xi1>) {
  %r = simdram.compact %a by %m scale 1 : tensor<4xi8>, tensor<4xi1> -> tensor<2x2xi8>
  func.return
}

// -----

// CHECK: a constant has no rows of its own
func.func @f(%s: i8, %n: index) {
  %x = simdram.fill %s count %n constant row 8 : i8 -> !simdram.vec<8>
  func.return
}

// -----

// CHECK: a constant is used by bbops only, not 'simdram.read'
func.func @f(%s: i8, %n: index, %d: tensor<?xi8>) {
  %x = simdram.fill %s count %n constant : i8 -> !simdram.vec<8>
  %r = simdram.read %x into %d[%n] stride %n : !simdram.vec<8>, tensor<?xi8>
  func.return
}

// -----

// CHECK: no program of add takes (plain, plain) to complemented
func.func @f(%x: !simdram.vec<8>) {
  %s = simdram.bbop add(%x, %x) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8, complemented>
  func.return
}

// -----

// CHECK: no program of abs takes (complemented) to plain
func.func @f(%x: !simdram.vec<8, complemented>) {
  %s = simdram.bbop abs(%x) : (!simdram.vec<8, complemented>) -> !simdram.vec<8>
  func.return
}

// -----

// CHECK: multiplies plain objects, got a complemented one
func.func @f(%x: !simdram.vec<8, complemented>, %k: i8) {
  %y = simdram.mul_scalar %x, %k : !simdram.vec<8, complemented>, i8 -> !simdram.vec<8, complemented>
  func.return
}

// -----

// CHECK: makes products of the 8 bits of its operand, got 16
func.func @f(%x: !simdram.vec<8>, %k: i16) {
  %y = simdram.mul_scalar %x, %k : !simdram.vec<8>, i16 -> !simdram.vec<16>
  func.return
}
