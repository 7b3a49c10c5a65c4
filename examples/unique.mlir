// Unique: of each run of equal neighbours, the last; and how many runs end in the vector.
// The last element has no neighbour after it, so it only ends the run before it: append one
// that differs from the last run to see that run too. Random bytes repeat about every 256th.
//
//   cim-run examples/unique.mlir --target upmem --size 1000003

func.func @unique(%a: tensor<?xi8>) -> (tensor<?xi8>, index) {
  %kept, %count = pattern.window_filter<2>(%pair in %a : tensor<?xi8>) -> (tensor<?xi8>, index) {
    %first = arith.constant 0 : index
    %second = arith.constant 1 : index
    %x = tensor.extract %pair[%first] : tensor<2xi8>
    %next = tensor.extract %pair[%second] : tensor<2xi8>
    %keep = arith.cmpi ne, %x, %next : i8
    pattern.yield %keep, %x : i1, i8
  }
  func.return %kept, %count : tensor<?xi8>, index
}
