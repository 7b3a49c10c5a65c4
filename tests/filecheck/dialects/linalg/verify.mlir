// RUN: cim-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: strides are 1 numbers of at least 1, got (0,)
func.func @f(%x: tensor<8xi8>, %w: tensor<3xi8>, %z: tensor<6xi32>) -> tensor<6xi32> {
  %y = linalg.conv_1d {strides = dense<0> : tensor<1xi64>}
    ins(%x, %w : tensor<8xi8>, tensor<3xi8>) outs(%z : tensor<6xi32>) -> tensor<6xi32>
  func.return %y : tensor<6xi32>
}

// -----

// CHECK: dilations are 1 numbers of at least 1, got (1, 1)
func.func @f(%x: tensor<8xi8>, %w: tensor<3xi8>, %z: tensor<6xi32>) -> tensor<6xi32> {
  %y = linalg.conv_1d {dilations = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<8xi8>, tensor<3xi8>) outs(%z : tensor<6xi32>) -> tensor<6xi32>
  func.return %y : tensor<6xi32>
}

// -----

// CHECK: padding is 1 numbers or pairs of at least 0, got (-1,)
func.func @f(%x: tensor<8xi8>, %w: tensor<3xi8>, %z: tensor<6xi32>) -> tensor<6xi32> {
  %y = linalg.conv_1d {padding = dense<-1> : tensor<1xi64>}
    ins(%x, %w : tensor<8xi8>, tensor<3xi8>) outs(%z : tensor<6xi32>) -> tensor<6xi32>
  func.return %y : tensor<6xi32>
}

// -----

// CHECK: padding is for tensors; a memref is read outside of its memory
func.func @f(%x: memref<8xi8>, %w: memref<3xi8>, %z: memref<8xi32>) {
  linalg.conv_1d {padding = dense<1> : tensor<1xi64>}
    ins(%x, %w : memref<8xi8>, memref<3xi8>) outs(%z : memref<8xi32>)
  func.return
}

// -----

// CHECK: operands are hw,hw->hw, got one of rank 1
func.func @f(%x: tensor<8x8xi8>, %w: tensor<3xi8>, %z: tensor<8x8xi32>) -> tensor<8x8xi32> {
  %y = linalg.conv_2d {padding = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<8x8xi8>, tensor<3xi8>) outs(%z : tensor<8x8xi32>) -> tensor<8x8xi32>
  func.return %y : tensor<8x8xi32>
}

// -----

// CHECK: dimension c is 4 and 5
func.func @f(%x: tensor<1x4x8xi8>, %w: tensor<5x3xi8>, %z: tensor<1x4x8xi32>) -> tensor<1x4x8xi32> {
  %y = linalg.depthwise_conv_1d_ncw_cw {padding = dense<1> : tensor<1xi64>}
    ins(%x, %w : tensor<1x4x8xi8>, tensor<5x3xi8>) outs(%z : tensor<1x4x8xi32>) -> tensor<1x4x8xi32>
  func.return %y : tensor<1x4x8xi32>
}

// -----

// CHECK: 9 outputs along w read 11 inputs, there are 8 and 1 + 1 zeros
func.func @f(%x: tensor<8xi8>, %w: tensor<3xi8>, %z: tensor<9xi32>) -> tensor<9xi32> {
  %y = linalg.conv_1d {padding = dense<1> : tensor<1xi64>}
    ins(%x, %w : tensor<8xi8>, tensor<3xi8>) outs(%z : tensor<9xi32>) -> tensor<9xi32>
  func.return %y : tensor<9xi32>
}

// -----

// Without padding xDSL's own check speaks.
// CHECK: expected operand #1 of rank 1 to match the result count of indexing_map #1, 2
func.func @f(%x: tensor<8x8xi8>, %w: tensor<3xi8>, %z: tensor<8x8xi32>) -> tensor<8x8xi32> {
  %y = linalg.conv_2d
    ins(%x, %w : tensor<8x8xi8>, tensor<3xi8>) outs(%z : tensor<8x8xi32>) -> tensor<8x8xi32>
  func.return %y : tensor<8x8xi32>
}
