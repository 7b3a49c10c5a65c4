// Select: the elements above a threshold, in order, and how many there are.
//
//   cim-run examples/select_above.mlir --target upmem --size 1000003

func.func @select_above(%a: tensor<?xi32>, %threshold: i32) -> (tensor<?xi32>, index) {
  %kept, %count = pattern.filter(%x in %a : tensor<?xi32>) shared(%t = %threshold : i32)
      -> (tensor<?xi32>, index) {
    %keep = arith.cmpi sgt, %x, %t : i32
    pattern.yield %keep, %x : i1, i32
  }
  func.return %kept, %count : tensor<?xi32>, index
}
