// RUN: cim-opt %s -p convert-linalg-to-poly | filecheck %s

// The Conv1D of two output channels, eight positions and three taps. Loops are named by their role.
// CHECK-LABEL: func.func @conv1d(
// CHECK-NEXT: %y = poly.kernel ins(%x, %w : tensor<10xi8>, tensor<2x3xi8>) outs(%z : tensor<2x8xi32>)
// CHECK-SAME: domain <"{ [oc, o0, k0] : 0 <= oc <= 1 and 0 <= o0 <= 7 and 0 <= k0 <= 2 }">
// CHECK-SAME: accesses [#poly.map<"{ [oc, o0, k0] -> [o0 + k0] }">, #poly.map<"{ [oc, o0, k0] -> [oc, k0] }">, #poly.map<"{ [oc, o0, k0] -> [oc, o0] }">] {
// CHECK-NEXT: ^bb0(%0: i8, %1: i8, %2: i32):
// CHECK-NEXT: %3 = arith.extsi %0 : i8 to i32
// CHECK-NEXT: %4 = arith.extsi %1 : i8 to i32
// CHECK-NEXT: %5 = arith.muli %3, %4 : i32
// CHECK-NEXT: %6 = arith.addi %2, %5 : i32
// CHECK-NEXT: poly.yield %6 : i32
// CHECK-NEXT: }
// CHECK-NEXT: func.return %y : tensor<2x8xi32>
#input = affine_map<(oc, ow, kw) -> (ow + kw)>
#weight = affine_map<(oc, ow, kw) -> (oc, kw)>
#output = affine_map<(oc, ow, kw) -> (oc, ow)>
func.func @conv1d(%x: tensor<10xi8>, %w: tensor<2x3xi8>, %z: tensor<2x8xi32>) -> tensor<2x8xi32> {
  %y = linalg.generic {indexing_maps = [#input, #weight, #output], iterator_types = ["parallel", "parallel", "reduction"]}
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

// A strided, dilated convolution; the padded copy of its input is gone.
// CHECK-LABEL: func.func @conv2d(
// CHECK-NOT: tensor.pad
// CHECK: poly.kernel ins(%x, %w : tensor<2x3x9x8xi8>, tensor<4x3x3x2xi8>)
// CHECK-SAME: accesses [#poly.map<"{ [o0, oc, o1, o2, ic, k1, k2] -> [o0, ic, -1 + 2o1 + k1, o2 + 2k2] }">
// CHECK-SAME: ] padded {
func.func @conv2d(%x: tensor<2x3x9x8xi8>, %w: tensor<4x3x3x2xi8>, %z: tensor<2x4x5x6xi32>) -> tensor<2x4x5x6xi32> {
  %zero = arith.constant 0 : i8
  %p = tensor.pad %x low[0, 0, 1, 0] high[0, 0, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : i8
  } : tensor<2x3x9x8xi8> to tensor<2x3x11x8xi8>
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<[1, 2]> : tensor<2xi64>, strides = dense<[2, 1]> : tensor<2xi64>}
    ins(%p, %w : tensor<2x3x11x8xi8>, tensor<4x3x3x2xi8>) outs(%z : tensor<2x4x5x6xi32>) -> tensor<2x4x5x6xi32>
  func.return %y : tensor<2x4x5x6xi32>
}

// A depthwise convolution with padding of its own. A batch of one makes no axis: `u`.
// CHECK-LABEL: func.func @depthwise(
// CHECK-NEXT: poly.kernel ins(%x, %w : tensor<1x4x8x8xi8>, tensor<4x3x3xi8>)
// CHECK-SAME: domain <"{ [u = 0, g, o0, o1, k0, k1] : 0 <= g <= 3 and 0 <= o0 <= 7
// CHECK-SAME: #poly.map<"{ [u, g, o0, o1, k0, k1] -> [u, g, -1 + o0 + k0, -1 + o1 + k1] }">
// CHECK-SAME: ] padded {
func.func @depthwise(%x: tensor<1x4x8x8xi8>, %w: tensor<4x3x3xi8>, %z: tensor<1x4x8x8xi32>) -> tensor<1x4x8x8xi32> {
  %y = linalg.depthwise_conv_2d_nchw_chw {padding = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x4x8x8xi8>, tensor<4x3x3xi8>) outs(%z : tensor<1x4x8x8xi32>) -> tensor<1x4x8x8xi32>
  func.return %y : tensor<1x4x8x8xi32>
}

// CHECK-LABEL: func.func @products(
// CHECK: poly.kernel ins(%a, %b : tensor<4x5xi8>, tensor<5x6xi8>)
// CHECK-SAME: accesses [#poly.map<"{ [o0, oc, ic] -> [o0, ic] }">, #poly.map<"{ [o0, oc, ic] -> [ic, oc] }">
// The matrix is what stays in the cells, so its rows are output channels.
// CHECK: poly.kernel ins(%a, %v : tensor<4x5xi8>, tensor<5xi8>)
// CHECK-SAME: accesses [#poly.map<"{ [oc, ic] -> [oc, ic] }">, #poly.map<"{ [oc, ic] -> [ic] }">, #poly.map<"{ [oc, ic] -> [oc] }">]
// CHECK: poly.kernel
// CHECK-SAME: accesses [#poly.map<"{ [g, o0, oc, ic] -> [g, o0, ic] }">, #poly.map<"{ [g, o0, oc, ic] -> [g, ic, oc] }">
func.func @products(%a: tensor<4x5xi8>, %b: tensor<5x6xi8>, %c: tensor<4x6xi32>, %v: tensor<5xi8>, %u: tensor<4xi32>,
                    %d: tensor<2x4x5xi8>, %e: tensor<2x5x6xi8>, %f: tensor<2x4x6xi32>)
    -> (tensor<4x6xi32>, tensor<4xi32>, tensor<2x4x6xi32>) {
  %m = linalg.matmul ins(%a, %b : tensor<4x5xi8>, tensor<5x6xi8>) outs(%c : tensor<4x6xi32>) -> tensor<4x6xi32>
  %n = linalg.matvec ins(%a, %v : tensor<4x5xi8>, tensor<5xi8>) outs(%u : tensor<4xi32>) -> tensor<4xi32>
  %o = linalg.batch_matmul ins(%d, %e : tensor<2x4x5xi8>, tensor<2x5x6xi8>) outs(%f : tensor<2x4x6xi32>) -> tensor<2x4x6xi32>
  func.return %m, %n, %o : tensor<4x6xi32>, tensor<4xi32>, tensor<2x4x6xi32>
}

// What neither multiplies nor accumulates stays.
// CHECK-LABEL: func.func @other(
// CHECK: linalg.add
func.func @other(%a: tensor<4xi32>, %b: tensor<4xi32>) -> tensor<4xi32> {
  %s = linalg.add ins(%a, %b : tensor<4xi32>, tensor<4xi32>) outs(%a : tensor<4xi32>) -> tensor<4xi32>
  func.return %s : tensor<4xi32>
}
