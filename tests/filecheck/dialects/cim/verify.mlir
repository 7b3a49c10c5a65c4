// RUN: cim-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: macros is at least 1, got 0
cim.program @k(%x: index) {
  cim.load_weights %x macros 0 rows 32
  cim.return
}

// -----

// CHECK: rows is at least 1, got 0
cim.program @k(%x: index) {
  cim.load_weights %x macros 8 rows 0
  cim.return
}

// -----

// CHECK: bytes is at least 1, got 0
cim.program @k(%x: index) {
  cim.copy global[%x] to input[%x] bytes 0
  cim.return
}

// -----

// CHECK: step is at least 0, got -1
cim.program @k(%x: index) {
  cim.mvm %x step -1 macros 8 rows 32 bits 8
  cim.return
}

// -----

// CHECK: macros is at least 1, got 0
cim.program @k(%x: index) {
  cim.mvm %x step 32 macros 0 rows 32 bits 8
  cim.return
}

// -----

// CHECK: rows is at least 1, got 0
cim.program @k(%x: index) {
  cim.mvm %x step 32 macros 8 rows 0 bits 8
  cim.return
}

// -----

// CHECK: elements is at least 1, got 0
cim.program @k(%x: index) {
  cim.vector_add %x, %x, %x elements 0
  cim.return
}

// -----

// CHECK: elements is at least 1, got -4
cim.program @k(%x: index) {
  cim.vector_clear %x elements -4
  cim.return
}

// -----

// CHECK: bits are 4, 8 or 16, got 5
cim.program @k(%x: index) {
  cim.mvm %x step 32 macros 8 rows 32 bits 5
  cim.return
}

// -----

// CHECK: a constant added to an address is 0 to 2047, got 2048
cim.program @k(%x: index) {
  cim.copy global[%x] plus 2048 to input[%x] bytes 4
  cim.return
}

// -----

// CHECK: a constant added to an address is 0 to 2047, got -1
cim.program @k(%x: index) {
  cim.copy global[%x] to input[%x] plus -1 bytes 4
  cim.return
}

// -----

// CHECK: the output register is loaded from output memory only
cim.program @k(%x: index) {
  cim.copy global[%x] to output_register[%x] bytes 4
  cim.return
}

// -----

// CHECK: a program takes addresses, of type index
cim.program @k(%x: index, %n: i32) {
  cim.return
}

// -----

// CHECK: a program ends in cim.return
cim.program @k(%x: index) {
  "test.termop"() : () -> ()
}

// -----

// CHECK: there is no cim.program @other
cim.program @k(%x: index) {
  cim.return
}
func.func @main(%a: tensor<4xi8>) {
  %r = cim.launch @other(%a) : (tensor<4xi8>) -> tensor<4xi32>
  func.return
}

// -----

// CHECK: there is no cim.program @main
func.func @main(%a: tensor<4xi8>) {
  %r = cim.launch @main(%a) : (tensor<4xi8>) -> tensor<4xi32>
  func.return
}

// -----

// CHECK: @k takes 1 addresses, got 1 operands and a result
cim.program @k(%x: index) {
  cim.return
}
func.func @main(%a: tensor<4xi8>) {
  %r = cim.launch @k(%a) : (tensor<4xi8>) -> tensor<4xi32>
  func.return
}

// -----

// CHECK: what a launch moves has a static shape, got tensor<?xi8>
cim.program @k(%x: index, %y: index) {
  cim.return
}
func.func @main(%a: tensor<?xi8>) {
  %r = cim.launch @k(%a) : (tensor<?xi8>) -> tensor<4xi32>
  func.return
}

// -----

// CHECK: what a launch moves holds integers, got tensor<4xf32>
cim.program @k(%x: index, %y: index) {
  cim.return
}
func.func @main(%a: tensor<4xi8>) {
  %r = cim.launch @k(%a) : (tensor<4xi8>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: extents of the shape are 0 or more, got [-4, 8]
func.func @main(%x: tensor<2x5xi8>) {
  %p = cim.pack %x shape [-4, 8] map affine_map<(s, r) -> (r, 0, s)>
    bounds [2, 7] index affine_map<(h, w) -> (h, w)>
    tables [dense<0> : tensor<8x2xi32>] : tensor<2x5xi8> -> tensor<32xi8>
  func.return
}

// -----

// CHECK: packed tensor has 32 elements, got tensor<31xi8>
func.func @main(%x: tensor<2x5xi8>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s, r) -> (r, 0, s)>
    bounds [2, 7] index affine_map<(h, w) -> (h, w)>
    tables [dense<0> : tensor<8x2xi32>] : tensor<2x5xi8> -> tensor<31xi8>
  func.return
}

// -----

// CHECK: packed tensor has 32 elements, got tensor<4x8xi8>
func.func @main(%x: tensor<2x5xi8>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s, r) -> (r, 0, s)>
    bounds [2, 7] index affine_map<(h, w) -> (h, w)>
    tables [dense<0> : tensor<8x2xi32>] : tensor<2x5xi8> -> tensor<4x8xi8>
  func.return
}

// -----

// CHECK: cim.pack keeps or widens the element type, got tensor<2x5xi16> and tensor<32xi8>
func.func @main(%x: tensor<2x5xi16>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s, r) -> (r, 0, s)>
    bounds [2, 7] index affine_map<(h, w) -> (h, w)>
    tables [dense<0> : tensor<8x2xi32>] : tensor<2x5xi16> -> tensor<32xi8>
  func.return
}

// -----

// CHECK: cim.unpack keeps the element type, got tensor<8xi32> and tensor<8xi64>
func.func @main(%y: tensor<8xi64>, %z: tensor<8xi32>) {
  %r = cim.unpack %y into %z shape [8] map affine_map<(s) -> (s)> bounds [8]
    index affine_map<(s) -> (s)> tables [] : tensor<8xi64>, tensor<8xi32> -> tensor<8xi32>
  func.return
}

// -----

// CHECK: index gives 2 indices of the tensor, got (d0, d1) -> (d0)
func.func @main(%x: tensor<2x5xi8>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s, r) -> (r, 0, s)>
    bounds [2, 7] index affine_map<(h, w) -> (h)>
    tables [dense<0> : tensor<8x2xi32>] : tensor<2x5xi8> -> tensor<32xi8>
  func.return
}

// -----

// CHECK: index gives 2 indices of the tensor, got (d0, d1)[s0] -> (d0, s0)
func.func @main(%x: tensor<2x5xi8>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s, r) -> (r, 0, s)>
    bounds [2, 7] index affine_map<(h, w)[n] -> (h, n)>
    tables [dense<0> : tensor<8x2xi32>] : tensor<2x5xi8> -> tensor<32xi8>
  func.return
}

// -----

// CHECK: there are 2 bounds of at least 1, got [2]
func.func @main(%x: tensor<2x5xi8>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s, r) -> (r, 0, s)>
    bounds [2] index affine_map<(h, w) -> (h, w)>
    tables [dense<0> : tensor<8x2xi32>] : tensor<2x5xi8> -> tensor<32xi8>
  func.return
}

// -----

// CHECK: there are 2 bounds of at least 1, got [0, 7]
func.func @main(%x: tensor<2x5xi8>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s, r) -> (r, 0, s)>
    bounds [0, 7] index affine_map<(h, w) -> (h, w)>
    tables [dense<0> : tensor<8x2xi32>] : tensor<2x5xi8> -> tensor<32xi8>
  func.return
}

// -----

// CHECK: map takes the 2 indices of the shape and gives 1 rows of tables and 2 coordinates, got (d0, d1) -> (d1, d0)
func.func @main(%x: tensor<2x5xi8>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s, r) -> (r, s)>
    bounds [2, 7] index affine_map<(h, w) -> (h, w)>
    tables [dense<0> : tensor<8x2xi32>] : tensor<2x5xi8> -> tensor<32xi8>
  func.return
}

// -----

// CHECK: map takes the 2 indices of the shape and gives 1 rows of tables and 2 coordinates, got (d0) -> (d0, 0, d0)
func.func @main(%x: tensor<2x5xi8>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s) -> (s, 0, s)>
    bounds [2, 7] index affine_map<(h, w) -> (h, w)>
    tables [dense<0> : tensor<8x2xi32>] : tensor<2x5xi8> -> tensor<32xi8>
  func.return
}

// -----

// CHECK: map takes the 2 indices of the shape and gives 1 rows of tables and 2 coordinates, got (d0, d1)[s0] -> (d1, s0, d0)
func.func @main(%x: tensor<2x5xi8>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s, r)[n] -> (r, n, s)>
    bounds [2, 7] index affine_map<(h, w) -> (h, w)>
    tables [dense<0> : tensor<8x2xi32>] : tensor<2x5xi8> -> tensor<32xi8>
  func.return
}

// -----

// CHECK: a table has 2 coordinates a row, got tensor<8x3xi32>
func.func @main(%x: tensor<2x5xi8>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s, r) -> (r, 0, s)>
    bounds [2, 7] index affine_map<(h, w) -> (h, w)>
    tables [dense<0> : tensor<8x3xi32>] : tensor<2x5xi8> -> tensor<32xi8>
  func.return
}

// -----

// CHECK: a table has 2 coordinates a row, got tensor<2xi32>
func.func @main(%x: tensor<2x5xi8>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s, r) -> (r, 0, s)>
    bounds [2, 7] index affine_map<(h, w) -> (h, w)>
    tables [dense<0> : tensor<2xi32>] : tensor<2x5xi8> -> tensor<32xi8>
  func.return
}

// -----

// CHECK: there are 2 divisors of at least 1, got [1]
func.func @main(%x: tensor<2x5xi8>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s, r) -> (r, 0, s)>
    bounds [2, 7] index affine_map<(h, w) -> (h, w)>
    tables [dense<0> : tensor<8x2xi32>] divisors [1] : tensor<2x5xi8> -> tensor<32xi8>
  func.return
}

// -----

// CHECK: there are 2 divisors of at least 1, got [1, 0]
func.func @main(%x: tensor<2x5xi8>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s, r) -> (r, 0, s)>
    bounds [2, 7] index affine_map<(h, w) -> (h, w)>
    tables [dense<0> : tensor<8x2xi32>] divisors [1, 0] : tensor<2x5xi8> -> tensor<32xi8>
  func.return
}

// -----

// CHECK: what is dropped names a row of each table, got tensor<3x2xi32>
func.func @main(%x: tensor<2x5xi8>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s, r) -> (r, 0, s)>
    bounds [2, 7] index affine_map<(h, w) -> (h, w)>
    tables [dense<0> : tensor<8x2xi32>] dropped dense<0> : tensor<3x2xi32> : tensor<2x5xi8> -> tensor<32xi8>
  func.return
}

// -----

// CHECK: what is dropped names a row of each table, got tensor<3xi32>
func.func @main(%x: tensor<2x5xi8>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s, r) -> (r, 0, s)>
    bounds [2, 7] index affine_map<(h, w) -> (h, w)>
    tables [dense<0> : tensor<8x2xi32>] dropped dense<0> : tensor<3xi32> : tensor<2x5xi8> -> tensor<32xi8>
  func.return
}

// -----

// CHECK: tensor has a static shape, got tensor<?x5xi8>
func.func @main(%x: tensor<?x5xi8>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s, r) -> (r, 0, s)>
    bounds [2, 7] index affine_map<(h, w) -> (h, w)>
    tables [dense<0> : tensor<8x2xi32>] : tensor<?x5xi8> -> tensor<32xi8>
  func.return
}

// -----

// CHECK: tensor holds integers, got tensor<2x5xf32>
func.func @main(%x: tensor<2x5xf32>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s, r) -> (r, 0, s)>
    bounds [2, 7] index affine_map<(h, w) -> (h, w)>
    tables [dense<0> : tensor<8x2xi32>] : tensor<2x5xf32> -> tensor<32xf32>
  func.return
}

// -----

// CHECK: packed tensor has a static shape, got tensor<?xi8>
func.func @main(%x: tensor<2x5xi8>) {
  %p = cim.pack %x shape [4, 8] map affine_map<(s, r) -> (r, 0, s)>
    bounds [2, 7] index affine_map<(h, w) -> (h, w)>
    tables [dense<0> : tensor<8x2xi32>] : tensor<2x5xi8> -> tensor<?xi8>
  func.return
}

// -----

// CHECK: init and result have one type, got tensor<8xi32>
func.func @main(%y: tensor<8xi32>, %z: tensor<8xi32>) {
  %r = cim.unpack %y into %z shape [8] map affine_map<(s) -> (s)> bounds [8]
    index affine_map<(n) -> (n)> tables [] : tensor<8xi32>, tensor<8xi32> -> tensor<4xi32>
  func.return
}
