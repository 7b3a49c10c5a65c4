// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-affine-schedule,poly-coalesce{explain=true}' 2>&1 | filecheck %s

// Two rows and two columns become one each, the last axis the fastest.
// CHECK: remark: 'poly.kernel': coalesced: 6 rows, 8 (2 x 4) columns
// CHECK: remark: 'poly.kernel': coalesced: 25 (5 x 5) rows, 4 (2 x 2) columns
// CHECK: remark: 'poly.kernel': coalesced: 32 (8 x 4) rows, 8 (4 x 2) columns

// CHECK-LABEL: func.func @conv1d(
// CHECK: poly.kernel
// CHECK-SAME: schedule <"{ [oc, o0, k0] -> virtual[floor((o0)/4), k0 + (o0) mod 4, 4oc + (o0) mod 4] }">
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
// CHECK-SAME: schedule <"{ [u, g, o0, o1, k0, k1] -> virtual[g, floor((o0)/2), floor((o1)/2), 5k0 + k1 + 10*((o0) mod 2) + 2*((o1) mod 2), 2*((o0) mod 2) + (o1) mod 2] }">
func.func @strided(%x: tensor<1x4x13x13xi8>, %w: tensor<4x3x3xi8>, %z: tensor<1x4x6x6xi32>) -> tensor<1x4x6x6xi32> {
  %y = linalg.depthwise_conv_2d_nchw_chw {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x4x13x13xi8>, tensor<4x3x3xi8>) outs(%z : tensor<1x4x6x6xi32>) -> tensor<1x4x6x6xi32>
  func.return %y : tensor<1x4x6x6xi32>
}

// CHECK-LABEL: func.func @dilated(
// CHECK: poly.kernel
// CHECK-SAME: schedule <"{ [u, g, o0, o1, k0, k1] -> virtual[floor((o0)/4), floor((o1)/4), (o1) mod 2, 8k0 + k1 + floor((o1)/2) - 2*floor((o1)/4) + 4*((o0) mod 4), floor((o1)/2) - 2*floor((o1)/4) + 2*((o0) mod 4)] }">
func.func @dilated(%x: tensor<1x1x12x12xi8>, %w: tensor<1x3x3xi8>, %z: tensor<1x1x8x8xi32>) -> tensor<1x1x8x8xi32> {
  %y = linalg.depthwise_conv_2d_nchw_chw {strides = dense<1> : tensor<2xi64>, dilations = dense<2> : tensor<2xi64>}
    ins(%x, %w : tensor<1x1x12x12xi8>, tensor<1x3x3xi8>) outs(%z : tensor<1x1x8x8xi32>) -> tensor<1x1x8x8xi32>
  func.return %y : tensor<1x1x8x8xi32>
}
