// Prefix sum: y[i] = a[0] + ... + a[i], wrapping at 32 bits.
//
//   cim-run examples/prefix_sum.mlir --target upmem --size 1000003

func.func @prefix_sum(%a: tensor<?xi32>) -> tensor<?xi32> {
  %zero = arith.constant 0 : i32
  %sums = pattern.scan(%x in %a : tensor<?xi32>) init(%acc = %zero : i32) {
    %s = arith.addi %acc, %x : i32
    pattern.yield %s : i32
  }
  func.return %sums : tensor<?xi32>
}
