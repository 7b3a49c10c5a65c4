// RUN: cim-run %s --target cim --entry conv | filecheck %s
// RUN: cim-run %s --target cim --entry conv --machine cim-64x64-1 --report json | filecheck %s --check-prefix JSON
// RUN: cim-run %S/../../../examples/gemv.mlir --target cim --size 6400 | filecheck %s --check-prefix GEMV

func.func @conv(%x: tensor<1x3x12x12xi8>, %w: tensor<8x3x3x3xi8>) -> tensor<1x8x10x10xi32> {
  %zero = arith.constant dense<0> : tensor<1x8x10x10xi32>
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x3x12x12xi8>, tensor<8x3x3x3xi8>) outs(%zero : tensor<1x8x10x10xi32>) -> tensor<1x8x10x10xi32>
  func.return %y : tensor<1x8x10x10xi32>
}
// CHECK:      @conv on cim, cim-32x64-8
// CHECK-NEXT:   input  %x: 1 x 3 x 12 x 12 int8 [
// CHECK-NEXT:   input  %w: 8 x 3 x 3 x 3 int8 [
// CHECK-NEXT:   result 0: 1 x 8 x 10 x 10 int32 [
// CHECK:      cim on cim-32x64-8
// CHECK:        cycles {{ +}}{{[0-9,]+}}  of all launches
// CHECK:        utilisation {{ +}}{{[0-9.]+}}%  21,600 products
// CHECK:      stalls, cycles
// CHECK:      check: result 0 (tensor<1x8x10x10xi32>) equals the reference (bit-exact)

// JSON:      "target": "cim",
// JSON-NEXT: "machine": "cim-64x64-1",
// JSON:      "check": {
// JSON-NEXT:   "ok": true,
// JSON:      "macro_steps": 100,
// JSON-NEXT: "macs": 21600,

// Numbers of 32 bits are four digits of 8 bits: ten products of them fit 32 bits.
// GEMV:      @gemv on cim, cim-32x64-8
// GEMV-NEXT:   input  %matrix: 6400 int32 [
// GEMV:        launches {{.*}} 10
// GEMV:        utilisation {{ +}}{{[0-9.]+}}%  64,000 products
// GEMV:      check: result 0 (tensor<?xi32>) equals the reference (bit-exact)
