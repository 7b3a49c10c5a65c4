// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-cover{mapping=im2col},poly-map-macros,poly-layout,poly-data-movement{explain=true}' 2>&1 | filecheck %s
// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-cover{mapping=im2col},poly-data-movement{movement=false explain=true}' 2>&1 | filecheck %s --check-prefix=PLAIN
// RUN: cim-opt %s -p 'convert-linalg-to-poly,poly-data-movement{order=MLGDF}' | filecheck %s --check-prefix=GIVEN
// RUN: not cim-opt %s -p 'convert-linalg-to-poly,poly-data-movement{order=FDM}' 2>&1 | filecheck %s --check-prefix=REFUSED

// Inputs of the next positions come from global memory, and sums of those before leave, while the
// macros multiply.
// CHECK: remark: 'poly.kernel': order M{{[A-Z]*G[A-Z]*}}F: {{[0-9,]+}} cycles, {{[0-9,]+}} of them stalls; 1 chunks, 1 launches
// CHECK: remark: 'poly.kernel': order M{{[A-Z]*G[A-Z]*}}F: {{[0-9,]+}} cycles, {{[0-9,]+}} of them stalls; 1 chunks, 1 launches
// PLAIN: remark: 'poly.kernel': order MDLF: {{[0-9,]+}} cycles, {{[0-9,]+}} of them stalls; 1 chunks, 1 launches
// REFUSED: poly_data_movement.mlir:20:3: error: order 'FDM' of a kernel; the orders are MGLDF, MLGDF, MGDLF, MGLDJKF, MGKLDFJ, MGJKLDF, MGKLDJF, MLDF, MDLF; use one of these

// CHECK-LABEL: func.func @matmul(
// CHECK: macros [{{.*}}] layout "steps" order "M{{[A-Z]*G[A-Z]*}}F" {
// PLAIN-LABEL: func.func @matmul(
// PLAIN: order "MDLF" {
// GIVEN-LABEL: func.func @matmul(
// GIVEN: ] order "MLGDF" {
func.func @matmul(%x: tensor<20x80xi8>, %w: tensor<80x24xi8>, %z: tensor<20x24xi32>) -> tensor<20x24xi32> {
  %y = linalg.matmul ins(%x, %w : tensor<20x80xi8>, tensor<80x24xi8>) outs(%z : tensor<20x24xi32>) -> tensor<20x24xi32>
  func.return %y : tensor<20x24xi32>
}

// CHECK-LABEL: func.func @depthwise(
// CHECK: order "M{{[A-Z]*G[A-Z]*}}F" {
// PLAIN-LABEL: func.func @depthwise(
// PLAIN: order "MDLF" {
func.func @depthwise(%x: tensor<1x4x12x12xi8>, %w: tensor<4x5x5xi8>, %z: tensor<1x4x12x12xi32>) -> tensor<1x4x12x12xi32> {
  %y = linalg.depthwise_conv_2d_nchw_chw {padding = dense<2> : tensor<2xi64>}
    ins(%x, %w : tensor<1x4x12x12xi8>, tensor<4x5x5xi8>) outs(%z : tensor<1x4x12x12xi32>) -> tensor<1x4x12x12xi32>
  func.return %y : tensor<1x4x12x12xi32>
}
