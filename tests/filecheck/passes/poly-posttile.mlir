// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-affine-schedule,poly-coalesce,poly-posttile' | filecheck %s
// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-affine-schedule,poly-coalesce,poly-posttile{explain=true}' 2>&1 | filecheck %s --check-prefix SAID
// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-affine-schedule{machine="%S/small.toml"},poly-coalesce,poly-posttile{machine="%S/small.toml"}' | filecheck %s --check-prefix SMALL
// RUN: not cim-opt %s -p 'convert-linalg-to-poly,poly-affine-schedule,poly-posttile' 2>&1 | filecheck %s --check-prefix EARLY

// EARLY: error: a kernel that has a basis already; the order is poly-pretile, poly-affine-schedule, poly-coalesce, poly-posttile; poly-posttile follows poly-coalesce

// SAID: remark: 'poly.kernel': 6 rows by 8 columns on 32 by 8; 2 macro steps (at least 2), 1 set of weights, 9.4% of the cells used
// CHECK-LABEL: func.func @conv1d(
// CHECK: schedule <"{ [oc, ow, kw] -> macro[floor((ow)/4), kw + (ow) mod 4, 4oc + (ow) mod 4] }">
// CHECK-SAME: cover <dense<4> : tensor<1x1xi32>, dense<{{\[\[}}2, 1, 1]]> : tensor<1x3xi32>, [#poly.image<dense<{{\[\[}}0, 0], [0, 1], [0, 2], [0, 3], [0, 4], [0, 5]]> : tensor<6x2xi32>, dense<{{\[\[}}0, 0], [0, 1], [0, 2], [0, 3], [1, 0], [1, 1], [1, 2], [1, 3]]> : tensor<8x2xi32>, dense<> : tensor<0x2xi32>>]>
// Four rows hold two positions.
// SMALL: schedule <"{ [oc, ow, kw] -> macro[floor((ow)/2), kw + (ow) mod 2, 2oc + (ow) mod 2] }"> cover <dense<2> : tensor<1x1xi32>
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

// CHECK-LABEL: func.func @depthwise(
// CHECK: schedule <"{ [u, o0, o1, g, k0, k1] -> macro[g, o0, o1 + 10k0 + k1, o1] }">
// CHECK-SAME: cover <dense<{{\[\[}}1, 0], [0, 8]]> : tensor<2x2xi32>, dense<1> : tensor<1x3xi32>, [#poly.image<
func.func @depthwise(%x: tensor<1x8x8x4xi8>, %w: tensor<3x3x4xi8>, %z: tensor<1x8x8x4xi32>) -> tensor<1x8x8x4xi32> {
  %y = linalg.depthwise_conv_2d_nhwc_hwc {padding = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x8x8x4xi8>, tensor<3x3x4xi8>) outs(%z : tensor<1x8x8x4xi32>) -> tensor<1x8x8x4xi32>
  func.return %y : tensor<1x8x8x4xi32>
}

// CHECK-LABEL: func.func @strided(
// CHECK: schedule <"{ [o0, k0] -> macro[2o0 + k0, o0] }"> cover <dense<8> : tensor<1x1xi32>
// Seven inputs of three positions are two tiles of rows: one more time, and two images.
// SMALL-LABEL: func.func @strided(
// SMALL: macro[floor((o0)/3), -2*floor((o0)/3) + floor((2o0 + k0 + 2*floor((o0)/3))/4), (2o0 + k0 + 2*floor((o0)/3)) mod 4, (o0) mod 3] }">
// SMALL-SAME: cover <dense<3> : tensor<1x1xi32>
// SMALL-SAME: tensor<4x2xi32>
// SMALL-SAME: tensor<3x2xi32>
func.func @strided(%x: tensor<17xi8>, %w: tensor<3xi8>, %z: tensor<8xi32>) -> tensor<8xi32> {
  %y = linalg.conv_1d {strides = dense<2> : tensor<1xi64>}
    ins(%x, %w : tensor<17xi8>, tensor<3xi8>) outs(%z : tensor<8xi32>) -> tensor<8xi32>
  func.return %y : tensor<8xi32>
}

// CHECK-LABEL: func.func @dilated(
// CHECK: schedule <"{ [o0, k0] -> macro[floor((o0)/7), 2k0 + (o0) mod 7, (o0) mod 7] }"> cover <dense<7> : tensor<1x1xi32>
func.func @dilated(%x: tensor<24xi8>, %w: tensor<3xi8>, %z: tensor<20xi32>) -> tensor<20xi32> {
  %y = linalg.conv_1d {dilations = dense<2> : tensor<1xi64>}
    ins(%x, %w : tensor<24xi8>, tensor<3xi8>) outs(%z : tensor<20xi32>) -> tensor<20xi32>
  func.return %y : tensor<20xi32>
}
