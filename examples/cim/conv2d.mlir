// A convolution of 8 channels to 16, 3x3 with stride 2. The zeros around its input become part of
// the access: no padded copy is made.
//
//   cim-run examples/cim/conv2d.mlir --target cim

func.func @conv2d(%x: tensor<1x8x28x28xi8>, %w: tensor<16x8x3x3xi8>) -> tensor<1x16x14x14xi32> {
  %zero8 = arith.constant 0 : i8
  %padded = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%n: index, %c: index, %h: index, %v: index):
    tensor.yield %zero8 : i8
  } : tensor<1x8x28x28xi8> to tensor<1x8x30x30xi8>
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<1x16x14x14xi32>
  %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<1x16x14x14xi32>)
      -> tensor<1x16x14x14xi32>
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>,
                                 strides = dense<2> : tensor<2xi64>}
      ins(%padded, %w : tensor<1x8x30x30xi8>, tensor<16x8x3x3xi8>)
      outs(%start : tensor<1x16x14x14xi32>) -> tensor<1x16x14x14xi32>
  func.return %y : tensor<1x16x14x14xi32>
}
