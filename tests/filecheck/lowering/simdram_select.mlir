// RUN: cim-opt %s -p 'convert-pattern-to-simdram{machine="%S/simdram_small.toml"}' | filecheck %s

// A table at an index that each lane has of its own: a chain of selects, one an element.

// CHECK: [[I:%[a-z0-9_]+]] = simdram.transpose %a[
// CHECK-NEXT: [[E0:%[a-z0-9_]+]] = tensor.extract %t[
// CHECK: [[IS1:%[a-z0-9_]+]] = simdram.bbop eq([[I]],
// CHECK: [[E1:%[a-z0-9_]+]] = tensor.extract %t[
// CHECK: [[F1:%[a-z0-9_]+]] = simdram.fill [[E1]]
// CHECK: [[F0:%[a-z0-9_]+]] = simdram.fill [[E0]]
// CHECK: [[S1:%[a-z0-9_]+]] = simdram.bbop select([[IS1]], [[F1]], [[F0]])
// CHECK: [[IS2:%[a-z0-9_]+]] = simdram.bbop eq([[I]],
// CHECK: simdram.bbop select([[IS2]], {{%.+}}, [[S1]])
func.func @look_up(%a: tensor<40xi32>, %t: tensor<3xi32>) -> tensor<40xi32> {
  %y = pattern.map(%x in %a : tensor<40xi32>) shared(%f = %t : tensor<3xi32>) -> tensor<40xi32> {
    %i = arith.index_cast %x : i32 to index
    %e = tensor.extract %f[%i] : tensor<3xi32>
    pattern.yield %e : i32
  }
  func.return %y : tensor<40xi32>
}
