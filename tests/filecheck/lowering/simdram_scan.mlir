// RUN: cim-opt %s -p 'convert-pattern-to-simdram{machine="%S/simdram_small.toml"}' | filecheck %s

// The lanes' blocks are folded, the host scans their totals, and every lane scans its block from
// where the ones before it ended. The first elements are brought in once, before both loops.

// CHECK: [[FIRST:%[a-z0-9_]+]] = simdram.transpose %a[{{.*}}] stride [[K:%[a-z0-9_]+]] count
// CHECK: [[LAST:%[a-z0-9_]+]] = scf.for {{.*}} to [[K]] step {{.*}} iter_args({{.*}} = [[FIRST]])
// CHECK: [[TOTALS:%[a-z0-9_]+]] = simdram.read [[LAST]] into
// CHECK: [[OFFSETS:%[a-z0-9_]+]] = pattern.scan exclusive ({{.*}} in [[TOTALS]] : tensor<?xi32>) init({{.*}} = %init : i32)
// CHECK: [[BEGIN:%[a-z0-9_]+]] = simdram.transpose [[OFFSETS]][
// CHECK: [[ONE:%[a-z0-9_]+]] = simdram.bbop add([[BEGIN]], [[FIRST]])
// CHECK-NEXT: [[SHOWN:%[a-z0-9_]+]] = simdram.read [[ONE]] into
// CHECK-NEXT: scf.for [[I:%[a-z0-9_]+]] = {{.*}} to [[K]] step {{.*}} iter_args([[ACC:%[a-z0-9_]+]] = [[ONE]], [[DEST:%[a-z0-9_]+]] = [[SHOWN]])
// CHECK-NEXT: [[X:%[a-z0-9_]+]] = simdram.transpose %a[[[I]]] stride [[K]]
// CHECK-NEXT: [[S:%[a-z0-9_]+]] = simdram.bbop add([[ACC]], [[X]])
// CHECK-NEXT: [[R:%[a-z0-9_]+]] = simdram.read [[S]] into [[DEST]][[[I]]] stride [[K]]
// CHECK-NEXT: scf.yield [[S]], [[R]]
// CHECK: pattern.reduce({{.*}} in [[TOTALS]]
// CHECK: pattern.scan(
// CHECK: tensor.insert_slice
func.func @prefix(%a: tensor<?xi32>, %init: i32) -> tensor<?xi32> {
  %r = pattern.scan(%x in %a : tensor<?xi32>) init(%acc = %init : i32) {
    %s = arith.addi %acc, %x : i32
    pattern.yield %s : i32
  }
  func.return %r : tensor<?xi32>
}
