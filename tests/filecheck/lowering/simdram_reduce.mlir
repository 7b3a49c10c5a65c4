// RUN: cim-opt %s -p 'convert-pattern-to-simdram{machine="%S/simdram_small.toml"}' | filecheck %s

// Column blocks: lane l folds the elements l*K to l*K + K-1, so that their order is kept. The host
// folds what the lanes give, then the last elements, which are fewer than K.

// CHECK: [[N:%[a-z0-9_]+]] = tensor.dim %a
// CHECK: [[CEIL:%[a-z0-9_]+]] = arith.divui {{.*}} : index
// CHECK-NEXT: [[K:%[a-z0-9_]+]] = arith.maxui [[CEIL]]
// CHECK-NEXT: [[LANES:%[a-z0-9_]+]] = arith.divui [[N]], [[K]] : index
// CHECK-NEXT: [[DONE:%[a-z0-9_]+]] = arith.muli [[LANES]], [[K]] : index
// CHECK-NEXT: [[REST:%[a-z0-9_]+]] = arith.subi [[N]], [[DONE]] : index
// 0 is neutral: the first element is the first accumulator.
// CHECK-NEXT: [[FIRST:%[a-z0-9_]+]] = simdram.transpose %a[{{%.+}}] stride [[K]] count [[LANES]]
// CHECK-NEXT: [[LAST:%[a-z0-9_]+]] = scf.for [[I:%[a-z0-9_]+]] = {{%.+}} to [[K]] step {{%.+}} iter_args([[ACC:%[a-z0-9_]+]] = [[FIRST]])
// CHECK-NEXT: [[X:%[a-z0-9_]+]] = simdram.transpose %a[[[I]]] stride [[K]] count [[LANES]]
// CHECK-NEXT: [[S:%[a-z0-9_]+]] = simdram.bbop add([[ACC]], [[X]])
// CHECK-NEXT: scf.yield [[S]]
// CHECK: [[PARTS:%[a-z0-9_]+]] = simdram.read [[LAST]] into
// CHECK: [[MOST:%[a-z0-9_]+]] = pattern.reduce({{.*}} in [[PARTS]] : tensor<?xi32>) init({{.*}} = %init : i32)
// CHECK: simdram.transpose %a[[[DONE]]] stride {{%.+}} count [[REST]]
// CHECK: [[ALL:%[a-z0-9_]+]] = pattern.reduce({{.*}}) init({{.*}} = [[MOST]] : i32)
// CHECK: func.return [[ALL]]
func.func @sum(%a: tensor<?xi32>, %init: i32) -> i32 {
  %r = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %init : i32) {
    %s = arith.addi %acc, %x : i32
    pattern.yield %s : i32
  }
  func.return %r : i32
}
