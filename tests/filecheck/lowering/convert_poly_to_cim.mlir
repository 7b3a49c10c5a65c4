// RUN: cim-opt %s -p convert-poly-to-cim | filecheck %s
// RUN: not cim-opt %s -p 'convert-poly-to-cim{machine="cim-64x64-1"}' 2>&1 | filecheck %s --check-prefix=ANOTHER

// Two macros take two positions of both channels each: two sets of positions. Sums of the first set
// leave while the second one is multiplied, those of the second one at once.
// CHECK: builtin.module attributes {cim.machine = "cim-32x64-8"} {
// CHECK-NEXT: cim.program @kernel_0(%x: index, %w: index, %y: index) {
// CHECK-NEXT: cim.load_weights %w macros 2 rows 4
// CHECK-NEXT: %0 = arith.constant -64 : index
// CHECK-NEXT: %1 = arith.constant 0 : index
// CHECK-NEXT: %2 = arith.constant 8 : index
// CHECK-NEXT: %3 = arith.constant 64 : index
// CHECK-NEXT: %4 = arith.addi %y, %0 : index
// CHECK-NEXT: cim.copy global[%x] to input_register[%1] bytes 8
// CHECK-NEXT: %5 = arith.addi %x, %2 : index
// CHECK-NEXT: cim.mvm %1 step 4 macros 2 rows 4 bits 8
// CHECK-NEXT: cim.copy output_register[%1] to output[%1] bytes 64
// CHECK-NEXT: cim.copy global[%5] to input_register[%1] bytes 8
// CHECK-NEXT: cim.mvm %1 step 4 macros 2 rows 4 bits 8
// CHECK-NEXT: %6 = arith.addi %4, %3 : index
// CHECK-NEXT: cim.copy output[%1] to global[%6] bytes 64
// CHECK-NEXT: %7 = arith.addi %6, %3 : index
// CHECK-NEXT: cim.copy output_register[%1] to global[%7] bytes 64
// CHECK-NEXT: cim.return
// CHECK-NEXT: }
// CHECK-LABEL: func.func @conv1d(
// CHECK: %0 = cim.pack %x shape [1, 1, 1, 1, 2, 1, 1, 1, 2, 4]
// CHECK-SAME: tables [dense<{{\[\[}}0, 0, 0], [0, 0, 1], [0, 0, 2], [0, 0, 3]]> : tensor<4x3xi32>,
// CHECK-SAME: : tensor<10xi8> -> tensor<16xi8>
// CHECK-NEXT: %1 = cim.pack %w shape [1, 1, 1, 4, 1, 1, 1, 2, 8]
// CHECK-SAME: : tensor<2x3xi8> -> tensor<64xi8>
// CHECK-NEXT: %2 = cim.launch @kernel_0(%0, %1) {cim.macs = 48 : i64} : (tensor<16xi8>, tensor<64xi8>) -> tensor<32xi32>
// CHECK-NEXT: %y = cim.unpack %2 into %z shape [1, 1, 1, 2, 1, 1, 2, 8]
// CHECK-SAME: : tensor<32xi32>, tensor<2x8xi32> -> tensor<2x8xi32>

// Mapped for two macros, it does not run on one.
// ANOTHER: convert_poly_to_cim.mlir:39:3: error: a kernel mapped to 2 macros; cim-64x64-1 has 1; map it for this machine with poly-map-macros
func.func @conv1d(%x: tensor<10xi8>, %w: tensor<2x3xi8>, %z: tensor<2x8xi32>) -> tensor<2x8xi32> {
  %y = poly.kernel ins(%x, %w : tensor<10xi8>, tensor<2x3xi8>) outs(%z : tensor<2x8xi32>)
    domain <"{ [oc, o0, k0] : 0 <= oc <= 1 and 0 <= o0 <= 7 and 0 <= k0 <= 2 }">
    accesses [
      #poly.map<"{ [oc, o0, k0] -> [o0 + k0] }">,
      #poly.map<"{ [oc, o0, k0] -> [oc, k0] }">,
      #poly.map<"{ [oc, o0, k0] -> [oc, o0] }">
    ] cover <dense<2> : tensor<1x1xi32>, dense<[[2, 1, 1]]> : tensor<1x3xi32>, [#poly.image<
      dense<[[0, 0], [0, 1], [0, 2], [0, 3]]> : tensor<4x2xi32>,
      dense<[[0, 0], [0, 1], [1, 0], [1, 1]]> : tensor<4x2xi32>, dense<> : tensor<0x2xi32>>]>
    macros [1, 1, 1, 2] layout "steps" order "MLDF" {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    %a32 = arith.extsi %a : i8 to i32
    %b32 = arith.extsi %b : i8 to i32
    %p = arith.muli %a32, %b32 : i32
    %s = arith.addi %acc, %p : i32
    poly.yield %s : i32
  }
  func.return %y : tensor<2x8xi32>
}
