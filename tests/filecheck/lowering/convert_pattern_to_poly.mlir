// RUN: cim-opt %s -p convert-pattern-to-poly | filecheck %s
// RUN: cim-opt %S/../../../examples/gemv.mlir -p 'convert-pattern-to-poly{sizes=640}' | filecheck %s --check-prefix=GEMV

// Bytes are multiplied as they are: one kernel.
// CHECK-LABEL: func.func @gemv(
// CHECK-NOT: pattern
// CHECK: %0 = tensor.splat %{{.*}} : tensor<10xi32>
// CHECK-NEXT: %y = poly.kernel ins(%m, %v : tensor<40xi8>, tensor<4xi8>) outs(%0 : tensor<10xi32>)
// CHECK-SAME: domain <"{ [oc, ic] : 0 <= oc <= 9 and 0 <= ic <= 3 }">
// CHECK-SAME: accesses [#poly.map<"{ [oc, ic] -> [4oc + ic] }">, #poly.map<"{ [oc, ic] -> [ic] }">, #poly.map<"{ [oc, ic] -> [oc] }">] {
// CHECK: func.return %y : tensor<10xi32>
func.func @gemv(%m: tensor<40xi8>, %v: tensor<4xi8>) -> tensor<10xi32> {
  %y = pattern.group<4>(%row in %m : tensor<40xi8>) shared(%x = %v : tensor<4xi8>) -> tensor<10xi32> {
    %zero = arith.constant 0 : i32
    %products = pattern.map(%a in %row : tensor<4xi8>, %b in %x : tensor<4xi8>) -> tensor<4xi32> {
      %a32 = arith.extsi %a : i8 to i32
      %b32 = arith.extsi %b : i8 to i32
      %p = arith.muli %a32, %b32 : i32
      pattern.yield %p : i32
    }
    %dot = pattern.reduce(%p in %products : tensor<4xi32>) init(%acc = %zero : i32) {
      %s = arith.addi %acc, %p : i32
      pattern.yield %s : i32
    }
    pattern.yield %dot : i32
  }
  func.return %y : tensor<10xi32>
}

// Declared ranges: one operand needs one digit of 8 bits, the other two.
// CHECK-LABEL: func.func @ranges(
// CHECK: %{{.*}} = pattern.map(%{{.*}} in %a : tensor<64xi32>) -> tensor<64xi8> {
// CHECK: %{{.*}}, %{{.*}} = pattern.map(%{{.*}} in %b : tensor<64xi32>) -> (tensor<64xi8>, tensor<64xi8>) {
// CHECK-COUNT-2: poly.kernel
// CHECK-NOT: poly.kernel
// CHECK: pattern.map(%{{.*}} in %{{.*}} : tensor<1xi32>, %{{.*}} in %{{.*}} : tensor<1xi32>) shared(%{{.*}} = %seven : i32) -> tensor<1xi32> {
// CHECK: tensor.extract
func.func @ranges(%a: tensor<64xi32> {pattern.range = [-128, 127]}, %b: tensor<64xi32> {pattern.range = [0, 255]}) -> i32 {
  %seven = arith.constant 7 : i32
  %products = pattern.map(%x in %a : tensor<64xi32>, %y in %b : tensor<64xi32>) -> tensor<64xi32> {
    %p = arith.muli %x, %y : i32
    pattern.yield %p : i32
  }
  %dot = pattern.reduce(%p in %products : tensor<64xi32>) init(%acc = %seven : i32) {
    %s = arith.addi %acc, %p : i32
    pattern.yield %s : i32
  }
  func.return %dot : i32
}

// A window times constant taps is a convolution; what is made of each sum stays a map.
// CHECK-LABEL: func.func @filter(
// CHECK: poly.kernel ins(%a, %{{.*}} : tensor<10xi8>, tensor<3xi8>)
// CHECK-SAME: accesses [#poly.map<"{ [o0, k0] -> [o0 + k0] }">, #poly.map<"{ [o0, k0] -> [k0] }">
// CHECK: pattern.map(
// CHECK: arith.shrsi
func.func @filter(%a: tensor<10xi8>) -> tensor<8xi32> {
  %y = pattern.window<3>(%w in %a : tensor<10xi8>) -> tensor<8xi32> {
    %zero = arith.constant 0 : i32
    %two = arith.constant 2 : i32
    %taps = arith.constant dense<[1, 2, 1]> : tensor<3xi8>
    %dot = pattern.reduce(%x in %w : tensor<3xi8>, %t in %taps : tensor<3xi8>) init(%acc = %zero : i32) {
      %x32 = arith.extsi %x : i8 to i32
      %t32 = arith.extsi %t : i8 to i32
      %p = arith.muli %x32, %t32 : i32
      %s = arith.addi %acc, %p : i32
      pattern.yield %s : i32
    } combine(%l, %r) {
      %s = arith.addi %l, %r : i32
      pattern.yield %s : i32
    }
    %mean = arith.shrsi %dot, %two : i32
    pattern.yield %mean : i32
  }
  func.return %y : tensor<8xi32>
}

// A sum of elements multiplies nothing.
// CHECK-LABEL: func.func @sum(
// CHECK: pattern.reduce
func.func @sum(%a: tensor<64xi32>) -> i32 {
  %zero = arith.constant 0 : i32
  %sum = pattern.reduce(%x in %a : tensor<64xi32>) init(%acc = %zero : i32) {
    %s = arith.addi %acc, %x : i32
    pattern.yield %s : i32
  }
  func.return %sum : i32
}

// The example as it is, with values of 32 bits: four digits, ten products that 32 bits hold.
// GEMV: tensor.cast %matrix : tensor<?xi32> to tensor<640xi32>
// GEMV: pattern.map({{.*}}) -> (tensor<640xi8>, tensor<640xi8>, tensor<640xi8>, tensor<640xi8>)
// GEMV: pattern.map({{.*}}) -> (tensor<64xi8>, tensor<64xi8>, tensor<64xi8>, tensor<64xi8>)
// GEMV-COUNT-10: poly.kernel
// GEMV-NOT: poly.kernel
// GEMV: %y = pattern.map(
// GEMV: tensor.cast %y : tensor<10xi32> to tensor<?xi32>
