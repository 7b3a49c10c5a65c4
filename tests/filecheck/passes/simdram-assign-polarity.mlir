// RUN: cim-opt %s -p simdram-assign-polarity | filecheck %s
// RUN: cim-opt %s -p 'simdram-assign-polarity{library=simdram}' | filecheck %s --check-prefix=PLAIN
// RUN: cim-opt %s -p simdram-assign-polarity,simdram-assign-polarity | filecheck %s

builtin.module attributes {simdram.machine = "simdram-1"} {

// The published additions take 8n + 1 commands, whatever is complemented: all stays as it is.
// PLAIN-NOT: complemented

// A sum wants one complemented operand.
// CHECK-LABEL: func.func @sum
// CHECK: [[X:%.+]] = simdram.transpose %a{{.*}} -> !simdram.vec<8, complemented>
// CHECK: [[Y:%.+]] = simdram.transpose %b{{.*}} -> !simdram.vec<8>
// CHECK: simdram.bbop add([[X]], [[Y]]) : (!simdram.vec<8, complemented>, !simdram.vec<8>) -> !simdram.vec<8>
func.func @sum(%a: tensor<8xi8>, %b: tensor<8xi8>, %n: index, %d: tensor<8xi8>) -> tensor<8xi8> {
  %x = simdram.transpose %a[%n] stride %n count %n : tensor<8xi8> -> !simdram.vec<8>
  %y = simdram.transpose %b[%n] stride %n count %n : tensor<8xi8> -> !simdram.vec<8>
  %s = simdram.bbop add(%x, %y) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
  %r = simdram.read %s into %d[%n] stride %n : !simdram.vec<8>, tensor<8xi8>
  func.return %r : tensor<8xi8>
}

// An accumulator is complemented over the whole loop when what is added cannot be: the fill puts in
// the complement of the scalar.
// CHECK-LABEL: func.func @accumulator
// CHECK: [[INIT:%.+]] = simdram.fill %k count %n : i8 -> !simdram.vec<8, complemented>
// CHECK: [[LAST:%.+]] = scf.for {{.*}} iter_args([[ACC:%.+]] = [[INIT]]) -> (!simdram.vec<8, complemented>) {
// CHECK: [[ABS:%.+]] = simdram.bbop abs({{.*}}) : (!simdram.vec<8>) -> !simdram.vec<8>
// CHECK: [[NEXT:%.+]] = simdram.bbop add([[ACC]], [[ABS]]) : (!simdram.vec<8, complemented>, !simdram.vec<8>) -> !simdram.vec<8, complemented>
// CHECK: scf.yield [[NEXT]] : !simdram.vec<8, complemented>
// CHECK: simdram.read [[LAST]] into {{.*}} : !simdram.vec<8, complemented>, tensor<8xi8>
func.func @accumulator(%a: tensor<8xi8>, %k: i8, %n: index, %d: tensor<8xi8>) -> tensor<8xi8> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %first = simdram.fill %k count %n : i8 -> !simdram.vec<8>
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %first) -> (!simdram.vec<8>) {
    %x = simdram.transpose %a[%i] stride %n count %n : tensor<8xi8> -> !simdram.vec<8>
    %p = simdram.bbop abs(%x) : (!simdram.vec<8>) -> !simdram.vec<8>
    %s = simdram.bbop add(%acc, %p) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
    scf.yield %s : !simdram.vec<8>
  }
  %r = simdram.read %last into %d[%c0] stride %c1 : !simdram.vec<8>, tensor<8xi8>
  func.return %r : tensor<8xi8>
}

// Where it comes from an operation that has no complemented result, a copy complements it: 16
// commands once, for 7 a round.
// CHECK-LABEL: func.func @entry
// CHECK: [[FIRST:%.+]] = simdram.bbop abs({{.*}}) : (!simdram.vec<8>) -> !simdram.vec<8>
// CHECK: [[INIT:%.+]] = simdram.bbop copy([[FIRST]]) : (!simdram.vec<8>) -> !simdram.vec<8, complemented>
// CHECK: scf.for {{.*}} iter_args({{%.+}} = [[INIT]]) -> (!simdram.vec<8, complemented>) {

// Three rounds do not pay for the copy.
// CHECK-LABEL: func.func @few_rounds
// CHECK-NOT: complemented
// CHECK: func.func @constants
func.func @entry(%a: tensor<8xi8>, %n: index, %d: tensor<8xi8>) -> tensor<8xi8> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = simdram.transpose %a[%c0] stride %n count %n : tensor<8xi8> -> !simdram.vec<8>
  %first = simdram.bbop abs(%x) : (!simdram.vec<8>) -> !simdram.vec<8>
  %last = scf.for %i = %c1 to %n step %c1 iter_args(%acc = %first) -> (!simdram.vec<8>) {
    %y = simdram.transpose %a[%i] stride %n count %n : tensor<8xi8> -> !simdram.vec<8>
    %p = simdram.bbop abs(%y) : (!simdram.vec<8>) -> !simdram.vec<8>
    %s = simdram.bbop add(%acc, %p) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
    scf.yield %s : !simdram.vec<8>
  }
  %r = simdram.read %last into %d[%c0] stride %c1 : !simdram.vec<8>, tensor<8xi8>
  func.return %r : tensor<8xi8>
}

func.func @few_rounds(%a: tensor<8xi8>, %n: index, %d: tensor<8xi8>) -> tensor<8xi8> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %x = simdram.transpose %a[%c0] stride %n count %n : tensor<8xi8> -> !simdram.vec<8>
  %first = simdram.bbop abs(%x) : (!simdram.vec<8>) -> !simdram.vec<8>
  %last = scf.for %i = %c1 to %c3 step %c1 iter_args(%acc = %first) -> (!simdram.vec<8>) {
    %y = simdram.transpose %a[%i] stride %n count %n : tensor<8xi8> -> !simdram.vec<8>
    %p = simdram.bbop abs(%y) : (!simdram.vec<8>) -> !simdram.vec<8>
    %s = simdram.bbop add(%acc, %p) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
    scf.yield %s : !simdram.vec<8>
  }
  %r = simdram.read %last into %d[%c0] stride %c1 : !simdram.vec<8>, tensor<8xi8>
  func.return %r : tensor<8xi8>
}

// A scalar that only bbops read has both polarities, each for those that like it.
// CHECK-DAG: [[K:%.+]] = simdram.fill %k count %n : i8 -> !simdram.vec<8>
// CHECK-DAG: [[NOT_K:%.+]] = simdram.fill %k count %n : i8 -> !simdram.vec<8, complemented>
// CHECK: simdram.bbop divu({{%.+}}, [[K]])
// CHECK: [[P:%.+]] = simdram.bbop divu({{%.+}}, [[K]])
// CHECK: simdram.bbop add([[P]], [[NOT_K]]) : (!simdram.vec<8>, !simdram.vec<8, complemented>)
func.func @constants(%a: tensor<8xi8>, %k: i8, %n: index, %d: tensor<8xi8>) -> tensor<8xi8> {
  %x = simdram.transpose %a[%n] stride %n count %n : tensor<8xi8> -> !simdram.vec<8>
  %y = simdram.fill %k count %n : i8 -> !simdram.vec<8>
  %p = simdram.bbop divu(%x, %y) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
  %q = simdram.bbop divu(%p, %y) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
  %s = simdram.bbop add(%q, %y) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
  %t = simdram.bbop divu(%s, %x) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
  %r = simdram.read %t into %d[%n] stride %n : !simdram.vec<8>, tensor<8xi8>
  func.return %r : tensor<8xi8>
}

// What somebody else holds stays plain, and so does what a function of complemented objects has.
// CHECK: func.func @shared(%x: !simdram.vec<8>, %y: !simdram.vec<8>) -> !simdram.vec<8>
// CHECK-NEXT: simdram.bbop add(%x, %y) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
func.func @shared(%x: !simdram.vec<8>, %y: !simdram.vec<8>) -> !simdram.vec<8> {
  %s = simdram.bbop add(%x, %y) : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
  func.return %s : !simdram.vec<8>
}
}
