// RUN: cim-opt %s -p 'pattern-to-upmem{unroll=1 fuse=false}' | filecheck %s

// A scalar that is a constant on the host is one in the kernel, where a multiplication by it is
// shifts and additions; another one is an argument of the kernel. Constant tensors are broadcast.

// CHECK: upmem.kernel @scale_0 tasklets {{[0-9]+}} ({{.*}}%k: i32
// CHECK: [[TABLE:%[a-z0-9_]+]] = upmem.wram shared : memref<4xi32, #upmem<space wram>>
// CHECK: [[TEN:%[a-z0-9_]+]] = arith.constant 10 : i32
// CHECK: arith.muli {{%.+}}, [[TEN]] : i32
// CHECK: arith.addi {{%.+}}, %k : i32
// CHECK: memref.load [[TABLE]]
// CHECK: func.func @scale
// CHECK: [[DENSE:%[a-z0-9_]+]] = arith.constant dense<[2, 3, 5, 7]> : tensor<4xi32>
// CHECK: upmem.broadcast [[DENSE]] to
// CHECK: upmem.launch @scale_0 on {{%.+}}({{.*}}%k
func.func @scale(%a: tensor<?xi32>, %k: i32) -> tensor<?xi32> {
  %ten = arith.constant 10 : i32
  %y = pattern.map(%x in %a : tensor<?xi32>) shared(%c = %ten : i32, %d = %k : i32) -> tensor<?xi32> {
    %p = arith.muli %x, %c : i32
    %q = arith.addi %p, %d : i32
    %table = arith.constant dense<[2, 3, 5, 7]> : tensor<4xi32>
    %three = arith.constant 3 : i32
    %r = arith.andi %q, %three : i32
    %i = arith.index_cast %r : i32 to index
    %s = tensor.extract %table[%i] : tensor<4xi32>
    pattern.yield %s : i32
  }
  func.return %y : tensor<?xi32>
}
