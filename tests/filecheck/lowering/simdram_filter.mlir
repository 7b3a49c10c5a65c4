// RUN: cim-opt %s -p 'convert-pattern-to-simdram{machine="%S/simdram_small.toml"}' | filecheck %s

// Only the conditions are read back, one bit a lane; the host keeps elements of its own vector.

// CHECK: [[BITS:%[a-z0-9_]+]] = tensor.empty({{%.+}}) : tensor<?xi1>
// CHECK: [[MASK:%[a-z0-9_]+]] = scf.for {{.*}} iter_args([[DEST:%[a-z0-9_]+]] = [[BITS]])
// CHECK: [[X:%[a-z0-9_]+]] = simdram.transpose %a[
// CHECK-NEXT: [[ZERO:%[a-z0-9_]+]] = simdram.fill
// CHECK-NEXT: [[C:%[a-z0-9_]+]] = simdram.bbop gts([[X]], [[ZERO]]) : (!simdram.vec<32>, !simdram.vec<32>) -> !simdram.vec<1>
// CHECK-NEXT: simdram.read [[C]] into [[DEST]][{{.*}} : !simdram.vec<1>, tensor<?xi1>
// CHECK-NOT: simdram.read
// CHECK: [[F:%[a-z0-9_]+]] = simdram.compact %a by [[MASK]] scale 1
// CHECK-NEXT: [[N:%[a-z0-9_]+]] = tensor.dim [[F]]
// CHECK-NEXT: func.return [[F]], [[N]]
func.func @positive(%a: tensor<?xi32>) -> (tensor<?xi32>, index) {
  %f, %n = pattern.filter(%x in %a : tensor<?xi32>) -> (tensor<?xi32>, index) {
    %zero = arith.constant 0 : i32
    %c = arith.cmpi sgt, %x, %zero : i32
    pattern.yield %c, %x : i1, i32
  }
  func.return %f, %n : tensor<?xi32>, index
}
