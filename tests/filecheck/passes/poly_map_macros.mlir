// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-cover{mapping=im2col},poly-map-macros{explain=true}' 2>&1 | filecheck %s
// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-cover{mapping=im2col},poly-map-macros{movement=false explain=true}' 2>&1 | filecheck %s --check-prefix=COPIES
// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-cover{mapping=im2col machine="cim-32x64-1"},poly-map-macros{machine="cim-32x64-1"}' | filecheck %s --check-prefix=ONE

// 24 output channels are three tiles of 8 columns: so many macros read the same inputs, and two take
// each. Three rounds of 32 rows for 80 input channels follow one another.
// CHECK: remark: 'poly.kernel': macros: 1 rounds x 1 groups x 3 output channels x 2 positions, 180 macro steps, {{[0-9,]+}} cycles
// Depthwise channels are groups; each has weights of its own.
// CHECK: remark: 'poly.kernel': macros: 1 rounds x 4 groups x 1 output channels x 2 positions, 576 macro steps, {{[0-9,]+}} cycles

// COPIES: remark: 'poly.kernel': macros: 1 rounds x 1 groups x 1 output channels x 8 positions
// COPIES: remark: 'poly.kernel': macros: 1 rounds x 1 groups x 1 output channels x 8 positions

// CHECK-LABEL: func.func @matmul(
// CHECK: macros [1, 1, 3, 2] {
// COPIES-LABEL: func.func @matmul(
// COPIES: macros [1, 1, 1, 8] {
// ONE-LABEL: func.func @matmul(
// ONE: macros [1, 1, 1, 1] {
func.func @matmul(%x: tensor<20x80xi8>, %w: tensor<80x24xi8>, %z: tensor<20x24xi32>) -> tensor<20x24xi32> {
  %y = linalg.matmul ins(%x, %w : tensor<20x80xi8>, tensor<80x24xi8>) outs(%z : tensor<20x24xi32>) -> tensor<20x24xi32>
  func.return %y : tensor<20x24xi32>
}

// CHECK-LABEL: func.func @depthwise(
// CHECK: macros [1, 4, 1, 2] {
// COPIES-LABEL: func.func @depthwise(
// COPIES: macros [1, 1, 1, 8] {
// ONE-LABEL: func.func @depthwise(
// ONE: macros [1, 1, 1, 1] {
func.func @depthwise(%x: tensor<1x4x12x12xi8>, %w: tensor<4x5x5xi8>, %z: tensor<1x4x12x12xi32>) -> tensor<1x4x12x12xi32> {
  %y = linalg.depthwise_conv_2d_nchw_chw {padding = dense<2> : tensor<2xi64>}
    ins(%x, %w : tensor<1x4x12x12xi8>, tensor<4x5x5xi8>) outs(%z : tensor<1x4x12x12xi32>) -> tensor<1x4x12x12xi32>
  func.return %y : tensor<1x4x12x12xi32>
}
