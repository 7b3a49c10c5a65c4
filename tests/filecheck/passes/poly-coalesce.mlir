// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-affine-schedule,poly-coalesce' | filecheck %s
// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-affine-schedule,poly-coalesce{explain=true}' 2>&1 | filecheck %s --check-prefix SAID
// RUN: not cim-opt %s -p 'convert-linalg-to-poly,poly-coalesce' 2>&1 | filecheck %s --check-prefix EARLY

// EARLY: poly-coalesce.mlir:12:3: error: a kernel that has no schedule; the order is poly-pretile, poly-affine-schedule, poly-coalesce, poly-posttile; poly-coalesce follows poly-affine-schedule

// Channels count most.
// SAID: remark: 'poly.kernel': coalesced: 6 rows, 8 (2 x 4) columns
// CHECK-LABEL: func.func @conv1d(
// CHECK: schedule <"{ [oc, ow, kw] -> virtual[floor((ow)/4), kw + (ow) mod 4, 4oc + (ow) mod 4] }">
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

// SAID: remark: 'poly.kernel': coalesced: 30 (3 x 10) rows, 8 columns
// CHECK-LABEL: func.func @depthwise(
// CHECK: schedule <"{ [u, o0, o1, g, k0, k1] -> virtual[g, o0, o1 + 10k0 + k1, o1] }">
func.func @depthwise(%x: tensor<1x8x8x4xi8>, %w: tensor<3x3x4xi8>, %z: tensor<1x8x8x4xi32>) -> tensor<1x8x8x4xi32> {
  %y = linalg.depthwise_conv_2d_nhwc_hwc {padding = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x8x8x4xi8>, tensor<3x3x4xi8>) outs(%z : tensor<1x8x8x4xi32>) -> tensor<1x8x8x4xi32>
  func.return %y : tensor<1x8x8x4xi32>
}

// CHECK-LABEL: func.func @strided(
// CHECK: schedule <"{ [o0, k0] -> virtual[2o0 + k0, o0] }">
func.func @strided(%x: tensor<17xi8>, %w: tensor<3xi8>, %z: tensor<8xi32>) -> tensor<8xi32> {
  %y = linalg.conv_1d {strides = dense<2> : tensor<1xi64>}
    ins(%x, %w : tensor<17xi8>, tensor<3xi8>) outs(%z : tensor<8xi32>) -> tensor<8xi32>
  func.return %y : tensor<8xi32>
}

// CHECK-LABEL: func.func @dilated(
// CHECK: schedule <"{ [o0, k0] -> virtual[floor((o0)/7), 2k0 + (o0) mod 7, (o0) mod 7] }">
func.func @dilated(%x: tensor<24xi8>, %w: tensor<3xi8>, %z: tensor<20xi32>) -> tensor<20xi32> {
  %y = linalg.conv_1d {dilations = dense<2> : tensor<1xi64>}
    ins(%x, %w : tensor<24xi8>, tensor<3xi8>) outs(%z : tensor<20xi32>) -> tensor<20xi32>
  func.return %y : tensor<20xi32>
}
