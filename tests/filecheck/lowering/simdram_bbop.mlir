// RUN: cim-opt %s -p 'pattern-to-simdram{machine="%S/simdram_small.toml"}' \
// RUN: -t 'simdram-bbop{lengths=100,100 function=dot}' | filecheck %s
// RUN: not cim-opt %s -p 'pattern-to-simdram{machine="%S/simdram_small.toml"}' \
// RUN: -t 'simdram-bbop{lengths=100,100}' 2>&1 | filecheck %s --check-prefix=SEVERAL
// RUN: not cim-opt %s -p 'pattern-to-simdram{machine="%S/simdram_small.toml"}' \
// RUN: -t 'simdram-bbop{lengths=100 function=dot}' 2>&1 | filecheck %s --check-prefix=LENGTHS
// RUN: not cim-opt %s -p 'convert-pattern-to-simdram{machine="%S/simdram_small.toml"}' \
// RUN: -t 'simdram-bbop{lengths=100,100 function=dot}' 2>&1 | filecheck %s --check-prefix=ROWS
// RUN: not cim-opt %s -t 'simdram-bbop' 2>&1 | filecheck %s --check-prefix=MACHINE

// The stream that the host issues: objects by their first D rows, loops with numbers and names.
// What the host does itself stands as a remark. The products are stored complemented.

// CHECK: bbop 1
// CHECK-NEXT: machine columns 64 subarrays 1 rows 1006
// CHECK-NEXT: library cim-opt
// CHECK-NEXT: function dot
// CHECK-NEXT: input a 100 i32
// CHECK-NEXT: input b 100 i32
// CHECK-NEXT: input k i32
// CHECK: trsp_init D[[X:[0-9]+]] a[0] stride 2 N 50 n 32
// CHECK-NEXT: trsp_init D[[Y:[0-9]+]] b[0] stride 2 N 50 n 32
// CHECK-NEXT: mul D[[SUM:[0-9]+]] D[[X]] D[[Y]] N 50 n 32 scratch {{[0-9]+}}
// CHECK-NEXT: loop i 1 2 1 {
// CHECK-NEXT:   trsp_init D{{[0-9]+}} a[i] stride 2 N 50 n 32
// CHECK-NEXT:   trsp_init D{{[0-9]+}} b[i] stride 2 N 50 n 32
// CHECK-NEXT:   mul ~D[[P:[0-9]+]] D
// CHECK-NEXT:   add D[[SUM]] D[[SUM]] ~D[[P]] N 50 n 32
// CHECK-NEXT: }
// CHECK-NEXT: vector [[V:[a-z0-9]+]] 50 i32
// CHECK-NEXT: read [[V]][0] stride 1 D[[SUM]] N 50 n 32
// CHECK-NEXT: host [[H:[a-z0-9]+]] i32 = pattern.reduce of [[V]]
// CHECK: output 0

// SEVERAL: error: 2 functions; a stream is of one function; the module has dot, add; name one with function=
// LENGTHS: error: 1 lengths for 'dot': [100]; 2 of its arguments have vectors of unknown length; give one length
// ROWS: error: 'simdram.transpose' names no D row; a stream calls objects by their rows; run simdram-allocate-rows first
// MACHINE: error: the module does not say its machine
func.func @dot(%a: tensor<?xi32>, %b: tensor<?xi32>, %k: i32) -> i32 {
  %p = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>) -> tensor<?xi32> {
    %m = arith.muli %x, %y : i32
    pattern.yield %m : i32
  }
  %r = pattern.reduce(%x in %p : tensor<?xi32>) init(%acc = %k : i32) {
    %s = arith.addi %acc, %x : i32
    pattern.yield %s : i32
  }
  func.return %r : i32
}

func.func @add(%a: tensor<8xi32>) -> tensor<8xi32> {
  func.return %a : tensor<8xi32>
}
