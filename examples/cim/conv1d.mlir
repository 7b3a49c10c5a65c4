// Two filters of three taps over ten inputs, as mlir-opt prints a convolution that has no name.
//
//   cim-run examples/cim/conv1d.mlir --target cim

#input = affine_map<(oc, ow, kw) -> (ow + kw)>
#weight = affine_map<(oc, ow, kw) -> (oc, kw)>
#output = affine_map<(oc, ow, kw) -> (oc, ow)>

func.func @conv1d(%x: tensor<10xi8>, %w: tensor<2x3xi8>) -> tensor<2x8xi32> {
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<2x8xi32>
  %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<2x8xi32>) -> tensor<2x8xi32>
  %y = linalg.generic {indexing_maps = [#input, #weight, #output],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<10xi8>, tensor<2x3xi8>) outs(%start : tensor<2x8xi32>) {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    %a32 = arith.extsi %a : i8 to i32
    %b32 = arith.extsi %b : i8 to i32
    %p = arith.muli %a32, %b32 : i32
    %s = arith.addi %acc, %p : i32
    linalg.yield %s : i32
  } -> tensor<2x8xi32>
  func.return %y : tensor<2x8xi32>
}
