// RUN: cim-opt %s | cim-opt | filecheck %s
// RUN: cim-opt %s --print-op-generic | cim-opt | filecheck %s

// Operations of MLIR that xDSL does not have, and a product of i8 that is summed in i32.
// CHECK-LABEL: func.func @f(
func.func @f(%x: tensor<1x8x8x4xi8>, %w: tensor<3x3x4xi8>, %z: tensor<1x3x3x4xi32>,
             %a: tensor<4x5xi8>, %b: tensor<5x6xi8>, %c: tensor<4x6xi32>,
             %v: tensor<5xi8>, %u: tensor<4xi32>) {
  // CHECK-NEXT: %y = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>} ins(%x, %w : tensor<1x8x8x4xi8>, tensor<3x3x4xi8>) outs(%z : tensor<1x3x3x4xi32>) -> tensor<1x3x3x4xi32>
  %y = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%x, %w : tensor<1x8x8x4xi8>, tensor<3x3x4xi8>) outs(%z : tensor<1x3x3x4xi32>) -> tensor<1x3x3x4xi32>
  // CHECK-NEXT: linalg.depthwise_conv_2d_nhwc_hwc {padding = dense<{{.*}}> : tensor<2x2xi64>, strides = dense<2> : tensor<2xi64>} ins(
  %p = linalg.depthwise_conv_2d_nhwc_hwc {padding = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%x, %w : tensor<1x8x8x4xi8>, tensor<3x3x4xi8>) outs(%z : tensor<1x3x3x4xi32>) -> tensor<1x3x3x4xi32>
  // CHECK-NEXT: %m = linalg.matmul ins(%a, %b : tensor<4x5xi8>, tensor<5x6xi8>) outs(%c : tensor<4x6xi32>) -> tensor<4x6xi32>
  %m = linalg.matmul ins(%a, %b : tensor<4x5xi8>, tensor<5x6xi8>) outs(%c : tensor<4x6xi32>) -> tensor<4x6xi32>
  // CHECK-NEXT: %n = linalg.matvec ins(%a, %v : tensor<4x5xi8>, tensor<5xi8>) outs(%u : tensor<4xi32>) -> tensor<4xi32>
  %n = linalg.matvec ins(%a, %v : tensor<4x5xi8>, tensor<5xi8>) outs(%u : tensor<4xi32>) -> tensor<4xi32>
  func.return
}
