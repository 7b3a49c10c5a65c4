// GEMV: y = M v for a matrix of 64 columns, given row after row. Each group of 64 elements is a
// row; the vector is shared: every element function gets the same one.
//
//   cim-run examples/gemv.mlir --target upmem --size 655360     (10240 rows)

func.func @gemv(%matrix: tensor<?xi32>, %vector: tensor<64xi32>) -> tensor<?xi32> {
  %y = pattern.group<64>(%row in %matrix : tensor<?xi32>) shared(%v = %vector : tensor<64xi32>)
      -> tensor<?xi32> {
    %zero = arith.constant 0 : i32
    %products = pattern.map(%m in %row : tensor<64xi32>, %x in %v : tensor<64xi32>)
        -> tensor<64xi32> {
      %p = arith.muli %m, %x : i32
      pattern.yield %p : i32
    }
    %dot = pattern.reduce(%p in %products : tensor<64xi32>) init(%acc = %zero : i32) {
      %s = arith.addi %acc, %p : i32
      pattern.yield %s : i32
    }
    pattern.yield %dot : i32
  }
  func.return %y : tensor<?xi32>
}
