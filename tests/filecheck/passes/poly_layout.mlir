// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-cover{mapping=rectangles},poly-map-macros,poly-layout{explain=true}' 2>&1 | filecheck %s
// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-cover{mapping=rectangles},poly-layout{movement=false}' | filecheck %s --check-prefix=PLAIN

// Neighbouring blocks of outputs share inputs: eight macros read one window of them.
// CHECK: remark: 'poly.kernel': layout window0: {{[0-9,]+}} bytes of inputs for 4,356 in the tensor, {{[0-9,]+}} cycles, {{[0-9,]+}} for layout
// A product of matrices has no windows.
// CHECK: remark: 'poly.kernel': layout steps: {{[0-9,]+}} bytes of inputs for 1,600 in the tensor

// CHECK-LABEL: func.func @depthwise(
// CHECK: layout "window0" {
// PLAIN-LABEL: func.func @depthwise(
// PLAIN: layout "steps" {
func.func @depthwise(%x: tensor<1x1x66x66xi8>, %w: tensor<1x3x3xi8>, %z: tensor<1x1x64x64xi32>) -> tensor<1x1x64x64xi32> {
  %y = linalg.depthwise_conv_2d_nchw_chw {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x1x66x66xi8>, tensor<1x3x3xi8>) outs(%z : tensor<1x1x64x64xi32>) -> tensor<1x1x64x64xi32>
  func.return %y : tensor<1x1x64x64xi32>
}

// CHECK-LABEL: func.func @matmul(
// CHECK: layout "steps" {
func.func @matmul(%x: tensor<20x80xi8>, %w: tensor<80x24xi8>, %z: tensor<20x24xi32>) -> tensor<20x24xi32> {
  %y = linalg.matmul ins(%x, %w : tensor<20x80xi8>, tensor<80x24xi8>) outs(%z : tensor<20x24xi32>) -> tensor<20x24xi32>
  func.return %y : tensor<20x24xi32>
}
