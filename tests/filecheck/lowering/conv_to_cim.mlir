// RUN: cim-opt %s -p 'conv-to-cim{explain=true}' 2>&1 | filecheck %s
// RUN: cim-opt %s -p 'conv-to-cim{mapping=im2col movement=false explain=true machine="cim-64x64-8"}' 2>&1 | filecheck %s --check-prefix=IM2COL
// RUN: cim-opt %s -p 'conv-to-cim{order=MDLF}' | filecheck %s --check-prefix=ORDER

// Each step says what it chose, with the place of the operation.
// CHECK: conv_to_cim.mlir:39:3: remark: 'poly.kernel': best: {{[0-9,]+}} macro steps (at least {{[0-9,]+}}), {{[0-9]+}} images, {{[0-9.]+}}% of the cells used, {{[0-9,]+}} cycles, {{[0-9,]+}} for layout
// CHECK: remark: 'poly.kernel': macros: {{[1-8]}} rounds x {{[1-8]}} groups x 1 output channels x {{[1-8]}} positions, {{[0-9,]+}} macro steps, {{[0-9,]+}} cycles
// CHECK: remark: 'poly.kernel': layout {{steps|window[0-9]}}: {{[0-9,]+}} bytes of inputs for 576 in the tensor, {{[0-9,]+}} cycles, {{[0-9,]+}} for layout
// CHECK: remark: 'poly.kernel': order M{{[GLDF]+}}: {{[0-9,]+}} cycles, {{[0-9,]+}} of them stalls; 1 chunks, 1 launches

// IM2COL: remark: 'poly.kernel': im2col: 576 macro steps
// IM2COL: remark: 'poly.kernel': macros: 1 rounds x 1 groups x 1 output channels x 8 positions, 576 macro steps
// IM2COL: remark: 'poly.kernel': layout steps: 14,400 bytes of inputs for 576 in the tensor
// IM2COL: remark: 'poly.kernel': order MDLF: {{[0-9,]+}} cycles

// CHECK: builtin.module attributes {cim.machine = "cim-32x64-8"} {
// CHECK-NEXT: cim.program @kernel_0(%x: index, %w: index, %y: index) {
// CHECK: cim.load_weights
// CHECK: cim.mvm
// CHECK: cim.return
// CHECK-LABEL: func.func @depthwise(
// CHECK-NOT: linalg.
// CHECK: cim.pack %x
// CHECK: cim.pack %w
// CHECK: cim.launch @kernel_0({{.*}}) {cim.macs = 14400 : i64}
// CHECK: %y = cim.unpack {{.*}} into %z
// CHECK-NEXT: func.return %y

// 25 rows of one window for each macro, which reads its own 25 bytes.
// IM2COL: builtin.module attributes {cim.machine = "cim-64x64-8"} {
// IM2COL: cim.load_weights {{%[0-9]+}} macros 8 rows 25
// IM2COL: cim.mvm {{%[0-9]+}} step 25 macros 8 rows 25 bits 8

// Sums leave before the next ones are computed.
// ORDER: scf.for
// ORDER-NEXT: cim.mvm
// ORDER-NEXT: cim.copy output_register[{{%[0-9]+}}] to output
func.func @depthwise(%x: tensor<1x4x12x12xi8>, %w: tensor<4x5x5xi8>, %z: tensor<1x4x12x12xi32>) -> tensor<1x4x12x12xi32> {
  %y = linalg.depthwise_conv_2d_nchw_chw {padding = dense<2> : tensor<2xi64>}
    ins(%x, %w : tensor<1x4x12x12xi8>, tensor<4x5x5xi8>) outs(%z : tensor<1x4x12x12xi32>) -> tensor<1x4x12x12xi32>
  func.return %y : tensor<1x4x12x12xi32>
}
