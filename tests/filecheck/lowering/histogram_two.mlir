// RUN: cim-opt %s -p 'pattern-to-upmem' | filecheck %s

// Two tables that fit into WRAM one at a time: two kernels.

// CHECK: upmem.kernel @two_0 tasklets
// CHECK: upmem.wram shared : memref<9000xi32, #upmem<space wram>>
// CHECK-NOT: upmem.wram shared
// CHECK: upmem.kernel @two_1 tasklets
// CHECK: upmem.wram shared : memref<9000xi32, #upmem<space wram>>
// CHECK-NOT: upmem.wram shared
// CHECK: func.func @two
// CHECK: upmem.launch @two_0
// CHECK: upmem.launch @two_1
func.func @two(%a: tensor<?xi32>) -> (tensor<9000xi32>, tensor<9000xi32>) {
  %z = arith.constant dense<0> : tensor<9000xi32>
  %y1 = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %z : tensor<9000xi32>) {
    %b = arith.constant 8191 : i32
    %q = arith.andi %x, %b : i32
    %i = arith.index_cast %q : i32 to index
    %u = tensor.insert %x into %acc[%i] : tensor<9000xi32>
    pattern.yield %u : tensor<9000xi32>
  } combine(%l, %r) {
    %s = arith.maxsi %l, %r : i32
    pattern.yield %s : i32
  }
  %y2 = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %z : tensor<9000xi32>) {
    %b = arith.constant 4095 : i32
    %q = arith.andi %x, %b : i32
    %i = arith.index_cast %q : i32 to index
    %u = tensor.insert %x into %acc[%i] : tensor<9000xi32>
    pattern.yield %u : tensor<9000xi32>
  } combine(%l, %r) {
    %s = arith.maxsi %l, %r : i32
    pattern.yield %s : i32
  }
  func.return %y1, %y2 : tensor<9000xi32>, tensor<9000xi32>
}
