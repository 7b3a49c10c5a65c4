// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-pretile' | filecheck %s
// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-pretile{exact=true}' | filecheck %s --check-prefix EXACT
// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-pretile{levels=1 exact=true}' | filecheck %s --check-prefix WHOLE
// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-pretile{explain=true}' 2>&1 | filecheck %s --check-prefix SAID
// RUN: not cim-opt %s -p 'convert-linalg-to-poly,poly-pretile{levels=0}' 2>&1 | filecheck %s --check-prefix NONE
// RUN: not cim-opt %s -p 'convert-linalg-to-poly,poly-pretile,poly-affine-schedule,poly-pretile' 2>&1 | filecheck %s --check-prefix LATE

// NONE: loops of 0 levels; a loop has at least 1; use levels=2
// LATE: error: a kernel that has a basis already; the order is poly-pretile, poly-affine-schedule, poly-coalesce, poly-posttile; poly-pretile comes first

// Two channels of four positions fill the eight columns of a macro. Domain and accesses stay.
// SAID: remark: 'poly.kernel': splits: o0 = 2 x 4; 2 macro steps (at least 2), 1 set of weights, 9.4% of the cells used
// CHECK-LABEL: func.func @conv1d(
// CHECK: domain <"{ [oc, ow, kw] : 0 <= oc <= 1 and 0 <= ow <= 7 and 0 <= kw <= 2 }"> accesses [#poly.map<"{ [oc, ow, kw] -> [ow + kw] }">,
// CHECK-SAME: splits {o0 = array<i64: 2, 4>} schedule <"{ [oc, ow, kw] -> split[oc, floor((ow)/4), (ow) mod 4, kw] }">
// Without splits each channel takes a step.
// WHOLE: splits {} schedule <"{ [oc, ow, kw] -> split[oc, ow, kw] }">
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

// A row of eight fills the columns as it is; the batch of one is no level.
// CHECK-LABEL: func.func @depthwise(
// CHECK: splits {} schedule <"{ [u, o0, o1, g, k0, k1] -> split[g, o0, o1, k0, k1] }">
func.func @depthwise(%x: tensor<1x8x8x4xi8>, %w: tensor<3x3x4xi8>, %z: tensor<1x8x8x4xi32>) -> tensor<1x8x8x4xi32> {
  %y = linalg.depthwise_conv_2d_nhwc_hwc {padding = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x8x8x4xi8>, tensor<3x3x4xi8>) outs(%z : tensor<1x8x8x4xi32>) -> tensor<1x8x8x4xi32>
  func.return %y : tensor<1x8x8x4xi32>
}

// SAID: remark: 'poly.kernel': splits: none; 1 macro step (at least 1)
// CHECK-LABEL: func.func @strided(
// CHECK: splits {} schedule <"{ [o0, k0] -> split[o0, k0] }">
func.func @strided(%x: tensor<17xi8>, %w: tensor<3xi8>, %z: tensor<8xi32>) -> tensor<8xi32> {
  %y = linalg.conv_1d {strides = dense<2> : tensor<1xi64>}
    ins(%x, %w : tensor<17xi8>, tensor<3xi8>) outs(%z : tensor<8xi32>) -> tensor<8xi32>
  func.return %y : tensor<8xi32>
}

// Three blocks of seven, the last one with six; factors alone take four steps.
// SAID: remark: 'poly.kernel': splits: o0 = 3 x 7; 3 macro steps (at least 3)
// CHECK-LABEL: func.func @dilated(
// CHECK: splits {o0 = array<i64: 3, 7>} schedule <"{ [o0, k0] -> split[floor((o0)/7), (o0) mod 7, k0] }">
// EXACT: splits {o0 = array<i64: 4, 5>} schedule <"{ [o0, k0] -> split[floor((o0)/5), (o0) mod 5, k0] }">
func.func @dilated(%x: tensor<24xi8>, %w: tensor<3xi8>, %z: tensor<20xi32>) -> tensor<20xi32> {
  %y = linalg.conv_1d {dilations = dense<2> : tensor<1xi64>}
    ins(%x, %w : tensor<24xi8>, tensor<3xi8>) outs(%z : tensor<20xi32>) -> tensor<20xi32>
  func.return %y : tensor<20xi32>
}
