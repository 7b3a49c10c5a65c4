// RUN: cim-opt %s -p 'poly-cover{machine="cim-64x64-8" mapping=covers explain=true}' 2>&1 | filecheck %s
// RUN: cim-opt %s -p 'poly-cover{machine="cim-64x64-8" mapping=im2col explain=true}' 2>&1 | filecheck %s --check-prefix=IM2COL
// RUN: cim-opt %s -p 'poly-cover{machine="cim-64x64-8" explain=true}' 2>&1 | filecheck %s --check-prefix=BEST

// The Conv1D of two output channels, eight positions and three taps: a block of four outputs of
// both channels reads six inputs.
// CHECK: poly_cover.mlir:28:3: remark: 'poly.kernel': covers: 2 macro steps (at least 2), 1 images, 4.7% of the cells used, {{[0-9,]+}} cycles, {{[0-9,]+}} for layout
// A product of matrices has no windows that slide.
// CHECK: poly_cover.mlir:48:3: remark: 'poly.kernel': im2col: 16 macro steps (at least 8)

// CHECK-LABEL: func.func @conv1d(
// CHECK: cover <dense<4> : tensor<1x1xi32>, dense<[[2, 1, 1]]> : tensor<1x3xi32>, [#poly.image<
// CHECK-SAME: dense<[[0, 0], [0, 1], [0, 2], [0, 3], [0, 4], [0, 5]]> : tensor<6x2xi32>,
// CHECK-SAME: dense<[[0, 0], [1, 0], [0, 1], [1, 1], [0, 2], [1, 2], [0, 3], [1, 3]]> : tensor<8x2xi32>,
// CHECK-SAME: dense<> : tensor<0x2xi32>>]> {

// One position a step, with one column for each output channel.
// IM2COL: remark: 'poly.kernel': im2col: 8 macro steps (at least 2), 1 images, 1.2% of the cells used
// IM2COL-LABEL: func.func @conv1d(
// IM2COL: cover <dense<1> : tensor<1x1xi32>, dense<[[2, 1, 1]]> : tensor<1x3xi32>, [#poly.image<
// IM2COL-SAME: dense<[[0, 0], [0, 1], [0, 2]]> : tensor<3x2xi32>, dense<[[0, 0], [1, 0]]> : tensor<2x2xi32>,

// Here as fast with fewer outputs a step, on more macros.
// BEST: remark: 'poly.kernel': best: {{[0-9]+}} macro steps (at least 2)
// BEST-LABEL: func.func @conv1d(
// BEST: cover <
func.func @conv1d(%x: tensor<10xi8>, %w: tensor<2x3xi8>, %z: tensor<2x8xi32>) -> tensor<2x8xi32> {
  %y = poly.kernel ins(%x, %w : tensor<10xi8>, tensor<2x3xi8>) outs(%z : tensor<2x8xi32>)
    domain <"{ [oc, o0, k0] : 0 <= oc <= 1 and 0 <= o0 <= 7 and 0 <= k0 <= 2 }">
    accesses [
      #poly.map<"{ [oc, o0, k0] -> [o0 + k0] }">,
      #poly.map<"{ [oc, o0, k0] -> [oc, k0] }">,
      #poly.map<"{ [oc, o0, k0] -> [oc, o0] }">
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

// CHECK-LABEL: func.func @product(
// CHECK: cover <dense<1> : tensor<1x1xi32>, dense<[[6, 20, 1]]> : tensor<1x3xi32>, [#poly.image<
func.func @product(%x: tensor<10x20xi8>, %w: tensor<20x6xi8>, %z: tensor<10x6xi32>) -> tensor<10x6xi32> {
  %y = poly.kernel ins(%x, %w : tensor<10x20xi8>, tensor<20x6xi8>) outs(%z : tensor<10x6xi32>)
    domain <"{ [o0, oc, ic] : 0 <= o0 <= 9 and 0 <= oc <= 5 and 0 <= ic <= 19 }">
    accesses [
      #poly.map<"{ [o0, oc, ic] -> [o0, ic] }">,
      #poly.map<"{ [o0, oc, ic] -> [ic, oc] }">,
      #poly.map<"{ [o0, oc, ic] -> [o0, oc] }">
    ] {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    %a32 = arith.extsi %a : i8 to i32
    %b32 = arith.extsi %b : i8 to i32
    %p = arith.muli %a32, %b32 : i32
    %s = arith.addi %acc, %p : i32
    poly.yield %s : i32
  }
  func.return %y : tensor<10x6xi32>
}
