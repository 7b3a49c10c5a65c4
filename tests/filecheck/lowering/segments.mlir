// RUN: cim-opt %s -p 'pattern-to-upmem' | filecheck %s

// The maximum is known when the host has merged it: a second launch, which takes it as argument.

// CHECK: upmem.kernel @below_max_0 tasklets
// CHECK: upmem.kernel @below_max_1 tasklets {{[0-9]+}} ({{.*}}: i32
// CHECK: func.func @below_max
// CHECK: upmem.launch @below_max_0 on
// CHECK: %max = arith.maxsi
// CHECK: upmem.host_thread
// CHECK: upmem.launch @below_max_1 on {{%.+}}({{.*}}%max{{.*}}) :
func.func @below_max(%a: tensor<?xi32>) -> tensor<?xi32> {
  %least = arith.constant -2147483648 : i32
  %max = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %least : i32) {
    %t = arith.maxsi %acc, %x : i32
    pattern.yield %t : i32
  }
  %y = pattern.map(%x in %a : tensor<?xi32>) shared(%m = %max : i32) -> tensor<?xi32> {
    %d = arith.subi %m, %x : i32
    pattern.yield %d : i32
  }
  func.return %y : tensor<?xi32>
}

// What the host itself does between patterns stays there; patterns inside control flow are lowered.
// CHECK: func.func @often
// CHECK: scf.for
// CHECK: upmem.launch @often_0
// CHECK: arith.muli
// CHECK: scf.yield
func.func @often(%a: tensor<?xi32>, %n: index) -> i32 {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%start = %zero) -> (i32) {
    %s = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %start : i32) {
      %t = arith.addi %acc, %x : i32
      pattern.yield %t : i32
    }
    %three = arith.constant 3 : i32
    %p = arith.muli %s, %three : i32
    scf.yield %p : i32
  }
  func.return %r : i32
}
