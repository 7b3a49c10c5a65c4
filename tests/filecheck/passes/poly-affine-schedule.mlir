// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-pretile,poly-affine-schedule' | filecheck %s
// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-affine-schedule' | filecheck %s
// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-affine-schedule{skews=0}' | filecheck %s --check-prefix PLAIN
// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-affine-schedule{explain=true}' 2>&1 | filecheck %s --check-prefix SAID
// RUN: not cim-opt %s -p 'convert-linalg-to-poly,poly-pretile,poly-affine-schedule{skews=0}' 2>&1 | filecheck %s --check-prefix NONE
// RUN: not cim-opt %s -p 'convert-linalg-to-poly,poly-affine-schedule,poly-coalesce,poly-affine-schedule' 2>&1 | filecheck %s --check-prefix LATE

// NONE: error: no basis with at most 0 skewed vectors for these splits of the kernel; a skewed vector moves along each split loop, columns are at most 8; leave splits out: poly-affine-schedule chooses them too
// LATE: error: a kernel that has virtual rows and columns already; the order is poly-pretile, poly-affine-schedule, poly-coalesce, poly-posttile; poly-affine-schedule comes before the others

// Columns are channels and the inner positions, which share the rows of ow + kw with the taps.
// SAID: remark: 'poly.kernel': basis: columns oc, o0.1 - k0, rows k0, times o0.0; 2 macro steps (at least 2), 1 set of weights, 9.4% of the cells used
// CHECK-LABEL: func.func @conv1d(
// CHECK: splits {o0 = array<i64: 2, 4>} basis {time = [array<i64: 0, 1, 0, 0>], row = [array<i64: 0, 0, 0, 1>], column = [array<i64: 1, 0, 0, 0>, array<i64: 0, 0, 1, -1>]}
// CHECK-SAME: schedule <"{ [oc, ow, kw] -> basis[floor((ow)/4), kw + (ow) mod 4, oc, (ow) mod 4] }">
// Without skewed vectors a step takes one position.
// PLAIN: splits {} basis {time = [array<i64: 0, 1, 0>], row = [array<i64: 0, 0, 1>], column = [array<i64: 1, 0, 0>]} schedule <"{ [oc, ow, kw] -> basis[ow, kw, oc] }">
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

// One axis is skewed: a step takes a row of outputs.
// SAID: remark: 'poly.kernel': basis: columns o1 - k1, rows k0, k1, times g, o0; 32 macro steps (at least 32)
// CHECK-LABEL: func.func @depthwise(
// CHECK: column = [array<i64: 0, 0, 1, 0, -1>]} schedule <"{ [u, o0, o1, g, k0, k1] -> basis[g, o0, k0, o1 + k1, o1] }">
func.func @depthwise(%x: tensor<1x8x8x4xi8>, %w: tensor<3x3x4xi8>, %z: tensor<1x8x8x4xi32>) -> tensor<1x8x8x4xi32> {
  %y = linalg.depthwise_conv_2d_nhwc_hwc {padding = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x8x8x4xi8>, tensor<3x3x4xi8>) outs(%z : tensor<1x8x8x4xi32>) -> tensor<1x8x8x4xi32>
  func.return %y : tensor<1x8x8x4xi32>
}

// SAID: remark: 'poly.kernel': basis: columns o0 - 2k0, rows k0, times none; 1 macro step
// CHECK-LABEL: func.func @strided(
// CHECK: basis {time = [], row = [array<i64: 0, 1>], column = [array<i64: 1, -2>]} schedule <"{ [o0, k0] -> basis[2o0 + k0, o0] }">
func.func @strided(%x: tensor<17xi8>, %w: tensor<3xi8>, %z: tensor<8xi32>) -> tensor<8xi32> {
  %y = linalg.conv_1d {strides = dense<2> : tensor<1xi64>}
    ins(%x, %w : tensor<17xi8>, tensor<3xi8>) outs(%z : tensor<8xi32>) -> tensor<8xi32>
  func.return %y : tensor<8xi32>
}

// The vector (2, -1) is no unit of the lattice: columns count positions.
// SAID: remark: 'poly.kernel': basis: columns 2o0.1 - k0, rows k0, times o0.0; 3 macro steps
// CHECK-LABEL: func.func @dilated(
// CHECK: column = [array<i64: 0, 2, -1>]} schedule <"{ [o0, k0] -> basis[floor((o0)/7), 2k0 + (o0) mod 7, (o0) mod 7] }">
func.func @dilated(%x: tensor<24xi8>, %w: tensor<3xi8>, %z: tensor<20xi32>) -> tensor<20xi32> {
  %y = linalg.conv_1d {dilations = dense<2> : tensor<1xi64>}
    ins(%x, %w : tensor<24xi8>, tensor<3xi8>) outs(%z : tensor<20xi32>) -> tensor<20xi32>
  func.return %y : tensor<20xi32>
}
