// RUN: cim-opt %s -p 'convert-pattern-to-simdram{machine="%S/simdram_small.toml"}' | filecheck %s

// Element k of all groups is one object: transposed with the size of a group for its stride.

// CHECK-DAG: [[ZERO:%[a-z0-9_]+]] = arith.constant 0 : index
// CHECK-DAG: [[ONE:%[a-z0-9_]+]] = arith.constant 1 : index
// CHECK-DAG: [[SIZE:%[a-z0-9_]+]] = arith.constant 2 : index
// CHECK-DAG: [[GROUPS:%[a-z0-9_]+]] = arith.constant 50 : index
// CHECK: [[P:%[a-z0-9_]+]] = simdram.transpose %a[[[ZERO]]] stride [[SIZE]] count [[GROUPS]]
// CHECK-NEXT: [[Q:%[a-z0-9_]+]] = simdram.transpose %a[[[ONE]]] stride [[SIZE]] count [[GROUPS]]
// CHECK-NEXT: [[D:%[a-z0-9_]+]] = simdram.bbop sub([[Q]], [[P]])
// CHECK-NEXT: simdram.read [[D]] into {{%.+}}[[[ZERO]]] stride [[ONE]]
func.func @pairs(%a: tensor<100xi32>) -> tensor<50xi32> {
  %y = pattern.group<2>(%s in %a : tensor<100xi32>) -> tensor<50xi32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %p = tensor.extract %s[%c0] : tensor<2xi32>
    %q = tensor.extract %s[%c1] : tensor<2xi32>
    %d = arith.subi %q, %p : i32
    pattern.yield %d : i32
  }
  func.return %y : tensor<50xi32>
}
