// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-reuse,poly-verify,poly-pretile,poly-verify,poly-affine-schedule,poly-verify,poly-coalesce,poly-verify,poly-posttile,poly-verify{machine=cim-32x64-8 explain=true}' 2>&1 | filecheck %s
// RUN: not cim-opt %s -p 'convert-linalg-to-poly,poly-affine-schedule{machine=cim-64x64-8},poly-coalesce,poly-posttile{machine=cim-64x64-8},poly-cover,poly-verify{machine=cim-64x64-8}' 2>&1 | filecheck %s --check-prefix OTHER

// OTHER: error: a cover that is not that of the schedule; poly-posttile makes both; leave out the schedule, or choose no other cover after it

// CHECK: remark: 'poly.kernel': verified: a kernel of 48 products, directions of reuse, the macro schedule, a cover of 1 image (by isl too)
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

// CHECK: remark: 'poly.kernel': verified: a kernel of 2,304 products, directions of reuse, the macro schedule, a cover of 1 image
func.func @depthwise(%x: tensor<1x8x8x4xi8>, %w: tensor<3x3x4xi8>, %z: tensor<1x8x8x4xi32>) -> tensor<1x8x8x4xi32> {
  %y = linalg.depthwise_conv_2d_nhwc_hwc {padding = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x8x8x4xi8>, tensor<3x3x4xi8>) outs(%z : tensor<1x8x8x4xi32>) -> tensor<1x8x8x4xi32>
  func.return %y : tensor<1x8x8x4xi32>
}

// CHECK: remark: 'poly.kernel': verified: a kernel of 24 products,
func.func @strided(%x: tensor<17xi8>, %w: tensor<3xi8>, %z: tensor<8xi32>) -> tensor<8xi32> {
  %y = linalg.conv_1d {strides = dense<2> : tensor<1xi64>}
    ins(%x, %w : tensor<17xi8>, tensor<3xi8>) outs(%z : tensor<8xi32>) -> tensor<8xi32>
  func.return %y : tensor<8xi32>
}

// CHECK: remark: 'poly.kernel': verified: a kernel of 60 products,
func.func @dilated(%x: tensor<24xi8>, %w: tensor<3xi8>, %z: tensor<20xi32>) -> tensor<20xi32> {
  %y = linalg.conv_1d {dilations = dense<2> : tensor<1xi64>}
    ins(%x, %w : tensor<24xi8>, tensor<3xi8>) outs(%z : tensor<20xi32>) -> tensor<20xi32>
  func.return %y : tensor<20xi32>
}
