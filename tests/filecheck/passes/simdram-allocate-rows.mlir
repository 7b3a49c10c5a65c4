// RUN: cim-opt %s -p simdram-allocate-rows | filecheck %s

builtin.module attributes {simdram.machine = "simdram-1"} {

// CHECK: builtin.module attributes {simdram.machine = "simdram-1", simdram.library = "cim-opt"}

// Rows are used again when an object is dead; a microprogram has rows of its own for what it
// computes meanwhile.

// CHECK: func.func @reuse
// CHECK: [[X:%.+]] = simdram.transpose {{.*}} row 0 :
// CHECK: [[P:%.+]] = simdram.bbop mul([[X]], [[X]]) row 32 scratch 64 :
// CHECK: [[Q:%.+]] = simdram.bbop add([[P]], [[X]]) row [[Q_ROW:[0-9]+]] :
// CHECK: simdram.read [[Q]]
// CHECK: simdram.transpose {{.*}} row 0 :
func.func @reuse(%a: tensor<8xi32>, %d: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %x = simdram.transpose %a[%c0] stride %c1 count %c8 : tensor<8xi32> -> !simdram.vec<32>
  %p = simdram.bbop mul(%x, %x) : (!simdram.vec<32>, !simdram.vec<32>) -> !simdram.vec<32>
  %q = simdram.bbop add(%p, %x) : (!simdram.vec<32>, !simdram.vec<32>) -> !simdram.vec<32>
  %r = simdram.read %q into %d[%c0] stride %c1 : !simdram.vec<32>, tensor<8xi32>
  %y = simdram.transpose %a[%c0] stride %c1 count %c8 : tensor<8xi32> -> !simdram.vec<32>
  %s = simdram.read %y into %r[%c0] stride %c1 : !simdram.vec<32>, tensor<8xi32>
  func.return %r, %s : tensor<8xi32>, tensor<8xi32>
}

// What a loop carries has one place: the sum lies where the sum before it lay, for an addition may
// write over its operand. The object that is needed after the loop is copied before it.

// CHECK: func.func @carried
// CHECK: [[X:%.+]] = simdram.transpose {{.*}} row 0 :
// CHECK-NEXT: [[COPY:%.+]] = simdram.bbop copy([[X]]) row [[SUM:[0-9]+]] :
// CHECK-NEXT: scf.for {{.*}} iter_args([[ACC:%.+]] = [[COPY]])
// CHECK-NEXT: [[S:%.+]] = simdram.bbop add([[ACC]], [[X]]) row [[SUM]] :
// CHECK-NEXT: scf.yield [[S]]
func.func @carried(%a: tensor<8xi32>, %d: tensor<8xi32>) -> tensor<8xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %x = simdram.transpose %a[%c0] stride %c1 count %c8 : tensor<8xi32> -> !simdram.vec<32>
  %t = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %x) -> (!simdram.vec<32>) {
    %s = simdram.bbop add(%acc, %x) : (!simdram.vec<32>, !simdram.vec<32>) -> !simdram.vec<32>
    scf.yield %s : !simdram.vec<32>
  }
  %u = simdram.bbop xor(%t, %x) : (!simdram.vec<32>, !simdram.vec<32>) -> !simdram.vec<32>
  %r = simdram.read %u into %d[%c0] stride %c1 : !simdram.vec<32>, tensor<8xi32>
  func.return %r : tensor<8xi32>
}

// Objects that swap places are copied away before either place is written.

// CHECK: func.func @swapped
// CHECK: scf.for {{.*}} iter_args([[V:%.+]] = {{%.+}}, [[W:%.+]] = {{%.+}})
// CHECK-NEXT: [[W1:%.+]] = simdram.bbop copy([[W]]) row
// CHECK-NEXT: [[V1:%.+]] = simdram.bbop copy([[V]]) row
// CHECK-NEXT: [[W2:%.+]] = simdram.bbop copy([[W1]]) row 0 :
// CHECK-NEXT: [[V2:%.+]] = simdram.bbop copy([[V1]]) row 8 :
// CHECK-NEXT: scf.yield [[W2]], [[V2]]
func.func @swapped(%a: tensor<8xi8>, %d: tensor<8xi8>) -> tensor<8xi8> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %x = simdram.transpose %a[%c0] stride %c1 count %c7 : tensor<8xi8> -> !simdram.vec<8>
  %y = simdram.transpose %a[%c1] stride %c1 count %c7 : tensor<8xi8> -> !simdram.vec<8>
  %p, %q = scf.for %i = %c0 to %c7 step %c1 iter_args(%v = %x, %w = %y) -> (!simdram.vec<8>, !simdram.vec<8>) {
    scf.yield %w, %v : !simdram.vec<8>, !simdram.vec<8>
  }
  %z = simdram.bbop sub(%p, %q) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
  %r = simdram.read %z into %d[%c0] stride %c1 : !simdram.vec<8>, tensor<8xi8>
  func.return %r : tensor<8xi8>
}

// A scalar that only bbops read has no rows; one that is read back has.

// CHECK: func.func @scalars
// CHECK: [[K:%.+]] = simdram.fill %k count {{%.+}} constant :
// CHECK: [[M:%.+]] = simdram.fill %k count {{%.+}} row {{[0-9]+}} :
// CHECK: simdram.bbop add([[M]], [[K]])
// CHECK: simdram.read [[M]]
func.func @scalars(%k: i8, %d: tensor<8xi8>) -> tensor<8xi8> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = simdram.fill %k count %c4 : i8 -> !simdram.vec<8>
  %y = simdram.fill %k count %c4 : i8 -> !simdram.vec<8>
  %z = simdram.bbop add(%y, %x) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
  %r = simdram.read %y into %d[%c0] stride %c1 : !simdram.vec<8>, tensor<8xi8>
  %s = simdram.read %z into %r[%c4] stride %c1 : !simdram.vec<8>, tensor<8xi8>
  func.return %s : tensor<8xi8>
}

}
