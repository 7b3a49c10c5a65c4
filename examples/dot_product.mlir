// Dot product: the sum of a[i] * b[i] over two vectors of one length, wrapping at 32 bits.
//
//   cim-run examples/dot_product.mlir --target upmem --size 1000003

func.func @dot_product(%a: tensor<?xi32>, %b: tensor<?xi32>) -> i32 {
  %zero = arith.constant 0 : i32
  %products = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>) -> tensor<?xi32> {
    %p = arith.muli %x, %y : i32
    pattern.yield %p : i32
  }
  %sum = pattern.reduce(%p in %products : tensor<?xi32>) init(%acc = %zero : i32) {
    %s = arith.addi %acc, %p : i32
    pattern.yield %s : i32
  }
  func.return %sum : i32
}
