// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-reuse{explain=true}' 2>&1 | filecheck %s

// Along a direction of reuse the operand stays the same; a loop that an operand does not use is one.
// CHECK: remark: 'poly.kernel': reuse: input along (1, 0, 0), (0, 1, -1); weight along (0, 1, 0); output along (0, 0, 1)
// CHECK: remark: 'poly.kernel': reuse: input along (0, 0, 1, 0, -2, 0), (0, 0, 0, 1, 0, -2); weight along (0, 0, 1, 0, 0, 0), (0, 0, 0, 1, 0, 0); output along (0, 0, 0, 0, 1, 0), (0, 0, 0, 0, 0, 1)
// CHECK: remark: 'poly.kernel': reuse: input along (0, 0, 2, 0, -1, 0), (0, 0, 0, 2, 0, -1); weight along (0, 0, 1, 0, 0, 0), (0, 0, 0, 1, 0, 0); output along (0, 0, 0, 0, 1, 0), (0, 0, 0, 0, 0, 1)

// CHECK-LABEL: func.func @conv1d(
// CHECK: poly.kernel
// CHECK-SAME: reuse {input = [array<i64: 1, 0, 0>, array<i64: 0, 1, -1>], weight = [array<i64: 0, 1, 0>], output = [array<i64: 0, 0, 1>]}
func.func @conv1d(%x: tensor<10xi8>, %w: tensor<2x3xi8>, %z: tensor<2x8xi32>) -> tensor<2x8xi32> {
  %y = linalg.generic {indexing_maps = [affine_map<(oc, ow, kw) -> (ow + kw)>, affine_map<(oc, ow, kw) -> (oc, kw)>, affine_map<(oc, ow, kw) -> (oc, ow)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<10xi8>, tensor<2x3xi8>) outs(%z : tensor<2x8xi32>) {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    %a32 = arith.extsi %a : i8 to i32
    %b32 = arith.extsi %b : i8 to i32
    %p = arith.muli %a32, %b32 : i32
    %s = arith.addi %acc, %p : i32
    linalg.yield %s : i32
  } -> tensor<2x8xi32>
  func.return %y : tensor<2x8xi32>
}

// CHECK-LABEL: func.func @strided(
// CHECK: poly.kernel
// CHECK-SAME: reuse {input = [array<i64: 0, 0, 1, 0, -2, 0>, array<i64: 0, 0, 0, 1, 0, -2>], weight = [array<i64: 0, 0, 1, 0, 0, 0>, array<i64: 0, 0, 0, 1, 0, 0>], output = [array<i64: 0, 0, 0, 0, 1, 0>, array<i64: 0, 0, 0, 0, 0, 1>]}
func.func @strided(%x: tensor<1x4x13x13xi8>, %w: tensor<4x3x3xi8>, %z: tensor<1x4x6x6xi32>) -> tensor<1x4x6x6xi32> {
  %y = linalg.depthwise_conv_2d_nchw_chw {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x4x13x13xi8>, tensor<4x3x3xi8>) outs(%z : tensor<1x4x6x6xi32>) -> tensor<1x4x6x6xi32>
  func.return %y : tensor<1x4x6x6xi32>
}

// CHECK-LABEL: func.func @dilated(
// CHECK: poly.kernel
// CHECK-SAME: reuse {input = [array<i64: 0, 0, 2, 0, -1, 0>, array<i64: 0, 0, 0, 2, 0, -1>], weight = [array<i64: 0, 0, 1, 0, 0, 0>, array<i64: 0, 0, 0, 1, 0, 0>], output = [array<i64: 0, 0, 0, 0, 1, 0>, array<i64: 0, 0, 0, 0, 0, 1>]}
func.func @dilated(%x: tensor<1x1x12x12xi8>, %w: tensor<1x3x3xi8>, %z: tensor<1x1x8x8xi32>) -> tensor<1x1x8x8xi32> {
  %y = linalg.depthwise_conv_2d_nchw_chw {strides = dense<1> : tensor<2xi64>, dilations = dense<2> : tensor<2xi64>}
    ins(%x, %w : tensor<1x1x12x12xi8>, tensor<1x3x3xi8>) outs(%z : tensor<1x1x8x8xi32>) -> tensor<1x1x8x8xi32>
  func.return %y : tensor<1x1x8x8xi32>
}
