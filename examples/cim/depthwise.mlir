// A depthwise convolution, 7x7 on planes of 56x56: each channel has weights of its own.
//
//   cim-run examples/cim/depthwise.mlir --target cim

func.func @depthwise(%x: tensor<1x4x56x56xi8>, %w: tensor<4x7x7xi8>) -> tensor<1x4x56x56xi32> {
  %zero = arith.constant 0 : i32
  %empty = tensor.empty() : tensor<1x4x56x56xi32>
  %start = linalg.fill ins(%zero : i32) outs(%empty : tensor<1x4x56x56xi32>)
      -> tensor<1x4x56x56xi32>
  %y = linalg.depthwise_conv_2d_nchw_chw {padding = dense<3> : tensor<2xi64>}
      ins(%x, %w : tensor<1x4x56x56xi8>, tensor<4x7x7xi8>)
      outs(%start : tensor<1x4x56x56xi32>) -> tensor<1x4x56x56xi32>
  func.return %y : tensor<1x4x56x56xi32>
}
