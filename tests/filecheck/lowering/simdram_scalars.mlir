// RUN: cim-opt %s -p 'convert-pattern-to-simdram{machine="%S/simdram_small.toml"}' | filecheck %s

// What is the same in all lanes is computed by the host. A product takes it as it is; a sum needs
// it in all lanes, filled by constant rows.

// CHECK: [[X:%[a-z0-9_]+]] = simdram.transpose %a[
// CHECK-NEXT: [[FF:%[a-z0-9_]+]] = arith.muli %k, %k : i32
// CHECK-NEXT: [[P:%[a-z0-9_]+]] = simdram.mul_scalar [[X]], [[FF]] : !simdram.vec<32>, i32 -> !simdram.vec<32>
// CHECK-NEXT: [[F:%[a-z0-9_]+]] = simdram.fill %k count
// CHECK-NEXT: simdram.bbop add([[P]], [[F]])
// CHECK-NOT: simdram.transpose
func.func @saxpy(%a: tensor<40xi32>, %k: i32) -> tensor<40xi32> {
  %y = pattern.map(%x in %a : tensor<40xi32>) shared(%f = %k : i32) -> tensor<40xi32> {
    %ff = arith.muli %f, %f : i32
    %p = arith.muli %x, %ff : i32
    %q = arith.addi %p, %f : i32
    pattern.yield %q : i32
  }
  func.return %y : tensor<40xi32>
}
