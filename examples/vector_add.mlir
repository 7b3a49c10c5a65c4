// Vector addition: c[i] = a[i] + b[i].
//
//   cim-run examples/vector_add.mlir --target upmem --size 1000003

func.func @vector_add(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {
  %c = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>) -> tensor<?xi32> {
    %s = arith.addi %x, %y : i32
    pattern.yield %s : i32
  }
  func.return %c : tensor<?xi32>
}
