// RUN: cim-opt %s -p 'convert-pattern-to-simdram{machine="%S/simdram_small.toml"}' | filecheck %s

// A known length of more than the 64 columns: rounds. One of less: no loop.

// CHECK: func.func @double
// CHECK: [[N:%[a-z0-9_]+]] = arith.constant 1000 : index
// CHECK: [[COLUMNS:%[a-z0-9_]+]] = arith.constant 64 : index
// CHECK: scf.for [[I:%[a-z0-9_]+]] = {{.*}} to [[N]] step [[COLUMNS]]
// CHECK-NEXT: [[LEFT:%[a-z0-9_]+]] = arith.subi [[N]], [[I]] : index
// CHECK-NEXT: [[LANES:%[a-z0-9_]+]] = arith.minui [[LEFT]], [[COLUMNS]] : index
// CHECK-NEXT: simdram.transpose %a[[[I]]] stride {{%.+}} count [[LANES]]
func.func @double(%a: tensor<1000xi32>) -> tensor<1000xi32> {
  %y = pattern.map(%x in %a : tensor<1000xi32>) -> tensor<1000xi32> {
    %s = arith.addi %x, %x : i32
    pattern.yield %s : i32
  }
  func.return %y : tensor<1000xi32>
}

// CHECK: func.func @once
// CHECK-NOT: scf.for
// CHECK: [[C40:%[a-z0-9_]+]] = arith.constant 40 : index
// CHECK: simdram.transpose %a[{{.*}} count [[C40]]
// CHECK-NOT: scf.for
// CHECK: func.return
func.func @once(%a: tensor<40xi32>) -> tensor<40xi32> {
  %y = pattern.map(%x in %a : tensor<40xi32>) -> tensor<40xi32> {
    %s = arith.addi %x, %x : i32
    pattern.yield %s : i32
  }
  func.return %y : tensor<40xi32>
}
