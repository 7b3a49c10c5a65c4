// RUN: cim-opt %s -p 'convert-pattern-to-simdram{machine="%S/simdram_small.toml"}' | filecheck %s

// Any length: rounds of as many lanes as the machine has columns. Objects stay in DRAM from one
// bbop to the next; what comes out goes where its elements belong.

// CHECK: builtin.module attributes {simdram.machine = {
// CHECK: func.func @add(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {
// CHECK-DAG: [[COLUMNS:%[a-z0-9_]+]] = arith.constant 64 : index
// CHECK-DAG: [[ONE:%[a-z0-9_]+]] = arith.constant 1 : index
// CHECK: [[N:%[a-z0-9_]+]] = tensor.dim %a
// CHECK: [[EMPTY:%[a-z0-9_]+]] = tensor.empty([[N]]) : tensor<?xi32>
// CHECK: [[Y:%[a-z0-9_]+]] = scf.for [[I:%[a-z0-9_]+]] = {{.*}} to [[N]] step [[COLUMNS]] iter_args([[DEST:%[a-z0-9_]+]] = [[EMPTY]])
// CHECK-NEXT: [[LEFT:%[a-z0-9_]+]] = arith.subi [[N]], [[I]] : index
// CHECK-NEXT: [[LANES:%[a-z0-9_]+]] = arith.minui [[LEFT]], [[COLUMNS]] : index
// CHECK-NEXT: [[P:%[a-z0-9_]+]] = simdram.transpose %a[[[I]]] stride [[ONE]] count [[LANES]] : tensor<?xi32> -> !simdram.vec<32>
// CHECK-NEXT: [[Q:%[a-z0-9_]+]] = simdram.transpose %b[[[I]]] stride [[ONE]] count [[LANES]]
// CHECK-NEXT: [[S:%[a-z0-9_]+]] = simdram.bbop add([[P]], [[Q]])
// CHECK-NEXT: [[R:%[a-z0-9_]+]] = simdram.read [[S]] into [[DEST]][[[I]]] stride [[ONE]]
// CHECK-NEXT: scf.yield [[R]]
// CHECK: func.return [[Y]]
func.func @add(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {
  %y = pattern.map(%p in %a : tensor<?xi32>, %q in %b : tensor<?xi32>) -> tensor<?xi32> {
    %s = arith.addi %p, %q : i32
    pattern.yield %s : i32
  }
  func.return %y : tensor<?xi32>
}
