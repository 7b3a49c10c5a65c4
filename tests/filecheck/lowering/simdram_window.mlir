// RUN: cim-opt %s -p 'convert-pattern-to-simdram{machine="%S/simdram_small.toml"}' | filecheck %s

// Lanes see their window as objects that are transposed one element further on.

// CHECK-DAG: [[HALO:%[a-z0-9_]+]] = arith.constant 2 : index
// CHECK-DAG: [[ONE:%[a-z0-9_]+]] = arith.constant 1 : index
// CHECK: [[N:%[a-z0-9_]+]] = tensor.dim %a
// A window of less than 3 elements gives nothing.
// CHECK-NEXT: [[MOST:%[a-z0-9_]+]] = arith.maxui [[N]], [[HALO]] : index
// CHECK-NEXT: [[OWNERS:%[a-z0-9_]+]] = arith.subi [[MOST]], [[HALO]] : index
// CHECK: scf.for [[I:%[a-z0-9_]+]] = {{.*}} to [[OWNERS]] step
// CHECK: [[FIRST:%[a-z0-9_]+]] = simdram.transpose %a[[[I]]] stride [[ONE]] count
// CHECK-NEXT: [[SHIFTED:%[a-z0-9_]+]] = arith.addi [[I]], [[HALO]] : index
// CHECK-NEXT: [[LAST:%[a-z0-9_]+]] = simdram.transpose %a[[[SHIFTED]]] stride [[ONE]] count
// CHECK-NEXT: simdram.bbop sub([[LAST]], [[FIRST]])
func.func @difference(%a: tensor<?xi32>) -> tensor<?xi32> {
  %y = pattern.window<3>(%s in %a : tensor<?xi32>) -> tensor<?xi32> {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %p = tensor.extract %s[%c0] : tensor<3xi32>
    %q = tensor.extract %s[%c2] : tensor<3xi32>
    %d = arith.subi %q, %p : i32
    pattern.yield %d : i32
  }
  func.return %y : tensor<?xi32>
}
