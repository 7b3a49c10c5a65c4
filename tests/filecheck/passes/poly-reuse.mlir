// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-reuse' | filecheck %s
// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-reuse{explain=true}' 2>&1 | filecheck %s --check-prefix SAID

// The Conv1D of PolyCIM: an input serves both channels, and a position and tap and their neighbours.
// SAID: poly-reuse.mlir:9:3: remark: 'poly.kernel': reuse: input along (1, 0, 0), (0, 1, -1); weight along (0, 1, 0); output along (0, 0, 1)
// CHECK-LABEL: func.func @conv1d(
// CHECK: reuse {input = [array<i64: 1, 0, 0>, array<i64: 0, 1, -1>], weight = [array<i64: 0, 1, 0>], output = [array<i64: 0, 0, 1>]}
func.func @conv1d(%x: tensor<10xi8>, %w: tensor<2x3xi8>, %z: tensor<2x8xi32>) -> tensor<2x8xi32> {
  %y = poly.kernel ins(%x, %w : tensor<10xi8>, tensor<2x3xi8>) outs(%z : tensor<2x8xi32>)
    domain <"{ [oc, ow, kw] : 0 <= oc < 2 and 0 <= ow < 8 and 0 <= kw < 3 }">
    accesses [
      #poly.map<"{ [oc, ow, kw] -> [ow + kw] }">,
      #poly.map<"{ [oc, ow, kw] -> [oc, kw] }">,
      #poly.map<"{ [oc, ow, kw] -> [oc, ow] }">
    ] {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    %a32 = arith.extsi %a : i8 to i32
    %b32 = arith.extsi %b : i8 to i32
    %p = arith.muli %a32, %b32 : i32
    %s = arith.addi %acc, %p : i32
    poly.yield %s : i32
  }
  func.return %y : tensor<2x8xi32>
}

// The batch of one, `u`, has no direction; each axis has its own.
// SAID: remark: 'poly.kernel': reuse: input along (0, 1, 0, 0, -1, 0), (0, 0, 1, 0, 0, -1);
// CHECK-LABEL: func.func @depthwise(
// CHECK: -> [u, -1 + o0 + k0, -1 + o1 + k1, g] }">
// CHECK-SAME: padded reuse {input = [array<i64: 0, 1, 0, 0, -1, 0>, array<i64: 0, 0, 1, 0, 0, -1>], weight = [array<i64: 0, 1, 0, 0, 0, 0>, array<i64: 0, 0, 1, 0, 0, 0>], output = [array<i64: 0, 0, 0, 0, 1, 0>, array<i64: 0, 0, 0, 0, 0, 1>]}
func.func @depthwise(%x: tensor<1x8x8x4xi8>, %w: tensor<3x3x4xi8>, %z: tensor<1x8x8x4xi32>) -> tensor<1x8x8x4xi32> {
  %y = linalg.depthwise_conv_2d_nhwc_hwc {padding = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x8x8x4xi8>, tensor<3x3x4xi8>) outs(%z : tensor<1x8x8x4xi32>) -> tensor<1x8x8x4xi32>
  func.return %y : tensor<1x8x8x4xi32>
}

// One position on is two taps back.
// CHECK-LABEL: func.func @strided(
// CHECK: reuse {input = [array<i64: 1, -2>], weight = [array<i64: 1, 0>], output = [array<i64: 0, 1>]}
func.func @strided(%x: tensor<17xi8>, %w: tensor<3xi8>, %z: tensor<8xi32>) -> tensor<8xi32> {
  %y = linalg.conv_1d {strides = dense<2> : tensor<1xi64>}
    ins(%x, %w : tensor<17xi8>, tensor<3xi8>) outs(%z : tensor<8xi32>) -> tensor<8xi32>
  func.return %y : tensor<8xi32>
}

// Two positions on is one tap back.
// CHECK-LABEL: func.func @dilated(
// CHECK: reuse {input = [array<i64: 2, -1>], weight = [array<i64: 1, 0>], output = [array<i64: 0, 1>]}
func.func @dilated(%x: tensor<24xi8>, %w: tensor<3xi8>, %z: tensor<20xi32>) -> tensor<20xi32> {
  %y = linalg.conv_1d {dilations = dense<2> : tensor<1xi64>}
    ins(%x, %w : tensor<24xi8>, tensor<3xi8>) outs(%z : tensor<20xi32>) -> tensor<20xi32>
  func.return %y : tensor<20xi32>
}
