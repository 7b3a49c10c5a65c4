// RUN: cim-opt %s | cim-opt | filecheck %s
// RUN: cim-opt %s --print-op-generic | cim-opt | filecheck %s
// RUN: cim-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK: builtin.module attributes {cim.machine = "cim-32x64-8"} {
module attributes {cim.machine = "cim-32x64-8"} {
  // CHECK-NEXT: cim.program @k(%x: index, %w: index, %y: index) attributes {note} {
  // GENERIC: "cim.program"() <{sym_name = "k"}> ({
  cim.program @k(%x: index, %w: index, %y: index) attributes {note} {
    // CHECK-NEXT: cim.load_weights %w macros 8 rows 32
    // GENERIC: "cim.load_weights"(%w) <{macros = 8 : i64, rows = 32 : i64}> : (index) -> ()
    cim.load_weights %w macros 8 rows 32
    // CHECK-NEXT: cim.copy global[%x] to input_register[%w] bytes 256
    // GENERIC-NEXT: "cim.copy"(%x, %w) <{source_memory = #cim<memory global>, target_memory = #cim<memory input_register>, bytes = 256 : i64}>
    cim.copy global[%x] to input_register[%w] bytes 256
    // CHECK-NEXT: cim.copy input[%x] plus 2047 to input_register[%w] plus 1 bytes 7 {note}
    // GENERIC-NEXT: "cim.copy"(%x, %w) <{source_memory = #cim<memory input>, source_offset = 2047 : i64, target_memory = #cim<memory input_register>, target_offset = 1 : i64, bytes = 7 : i64}> {note}
    cim.copy input[%x] plus 2047 to input_register[%w] plus 1 bytes 7 {note}
    // CHECK-NEXT: cim.mvm %w step 32 macros 8 rows 32 bits 8
    // GENERIC-NEXT: "cim.mvm"(%w) <{step = 32 : i64, macros = 8 : i64, rows = 32 : i64, bits = 8 : i64}> : (index) -> ()
    cim.mvm %w step 32 macros 8 rows 32 bits 8
    // CHECK-NEXT: cim.mvm %w step 0 macros 1 rows 24 bits 16 accumulate
    // GENERIC-NEXT: "cim.mvm"(%w) <{step = 0 : i64, macros = 1 : i64, rows = 24 : i64, bits = 16 : i64, accumulate}>
    cim.mvm %w step 0 macros 1 rows 24 bits 16 accumulate
    // CHECK-NEXT: cim.copy output_register[%w] to output[%y] bytes 256
    cim.copy output_register[%w] to output[%y] bytes 256
    // CHECK-NEXT: cim.copy output[%y] to output_register[%w] bytes 4
    cim.copy output[%y] to output_register[%w] bytes 4
    // CHECK-NEXT: cim.vector_add %y, %y, %x elements 64
    // GENERIC: "cim.vector_add"(%y, %y, %x) <{elements = 64 : i64}>
    cim.vector_add %y, %y, %x elements 64
    // CHECK-NEXT: cim.vector_clear %y elements 64
    // GENERIC-NEXT: "cim.vector_clear"(%y) <{elements = 64 : i64}>
    cim.vector_clear %y elements 64
    // CHECK-NEXT: cim.return
    // GENERIC-NEXT: "cim.return"() : () -> ()
    cim.return
  }
  // CHECK: func.func @main
  func.func @main(%x: tensor<2x5xi8>, %w: tensor<64xi8>, %z: tensor<2x4xi32>) -> tensor<2x4xi32> {
    // CHECK-NEXT: %p = cim.pack %x shape [4, 8] map affine_map<(d0, d1) -> (d1, 0, d0)> bounds [2, 7] index affine_map<(d0, d1) -> (d0, (d1 + -1))> tables [dense<0> : tensor<8x2xi32>] divisors [1, 2] dropped dense<3> : tensor<1x1xi32> {note} : tensor<2x5xi8> -> tensor<32xi8>
    // GENERIC: %p = "cim.pack"(%x) <{shape = array<i64: 4, 8>, {{.*}} divisors = array<i64: 1, 2>, dropped = dense<3> : tensor<1x1xi32>}> {note} : (tensor<2x5xi8>) -> tensor<32xi8>
    %p = cim.pack %x shape [4, 8] map affine_map<(s, r) -> (r, 0, s)> bounds [2, 7]
      index affine_map<(h, w) -> (h, w - 1)> tables [dense<0> : tensor<8x2xi32>] divisors [1, 2]
      dropped dense<3> : tensor<1x1xi32> {note} : tensor<2x5xi8> -> tensor<32xi8>
    // CHECK-NEXT: %y = cim.launch @k(%p, %w) {cim.macs = 360 : i64} : (tensor<32xi8>, tensor<64xi8>) -> tensor<8xi32>
    // GENERIC-NEXT: %y = "cim.launch"(%p, %w) <{program = @k}> {cim.macs = 360 : i64}
    %y = cim.launch @k(%p, %w) {cim.macs = 360 : i64} : (tensor<32xi8>, tensor<64xi8>) -> tensor<8xi32>
    // CHECK-NEXT: %r = cim.unpack %y into %z shape [8] map affine_map<(d0) -> (d0)> bounds [8] index affine_map<(d0) -> ((d0 floordiv 4), (d0 mod 4))> tables [] : tensor<8xi32>, tensor<2x4xi32> -> tensor<2x4xi32>
    // GENERIC-NEXT: %r = "cim.unpack"(%y, %z)
    %r = cim.unpack %y into %z shape [8] map affine_map<(s) -> (s)> bounds [8]
      index affine_map<(n) -> (n floordiv 4, n mod 4)> tables []
      : tensor<8xi32>, tensor<2x4xi32> -> tensor<2x4xi32>
    func.return %r : tensor<2x4xi32>
  }
}
