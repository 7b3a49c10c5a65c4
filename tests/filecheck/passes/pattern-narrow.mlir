// RUN: cim-opt %s -p pattern-narrow | filecheck %s
// RUN: cim-opt %s -p 'pattern-narrow{widths=any}' | filecheck %s --check-prefix ANY

// Declared ranges make the product one of bytes; the sum's length is not known.
// CHECK-LABEL: func.func @dot(
// CHECK-SAME: %a: tensor<?xi32> {pattern.range = [0 : i64, 255 : i64]}
// CHECK: %x_1 = arith.trunci %x : i32 to i8
// CHECK-NEXT: %x_2 = arith.extui %x_1 : i8 to i16
// CHECK-NEXT: %y_1 = arith.trunci %y : i32 to i8
// CHECK-NEXT: %y_2 = arith.extsi %y_1 : i8 to i16
// CHECK-NEXT: %m = arith.muli %x_2, %y_2 : i16
// CHECK-NEXT: %m_1 = arith.extsi %m : i16 to i32
// CHECK-NEXT: arith.addi %acc, %m_1 : i32
func.func @dot(%a: tensor<?xi32> {pattern.range = [0, 255]},
               %b: tensor<?xi32> {pattern.range = [-128, 127]}) -> i32 {
  %zero = arith.constant 0 : i32
  %dot = pattern.reduce(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>)
      init(%acc = %zero : i32) {
    %m = arith.muli %x, %y : i32
    %s = arith.addi %acc, %m : i32
    pattern.yield %s : i32
  } combine(%l, %r) {
    %t = arith.addi %l, %r : i32
    pattern.yield %t : i32
  }
  func.return %dot : i32
}

// 64 products of 16 bits make a sum of 22.
// ANY-LABEL: func.func @sum_of_64
// ANY: pattern.reduce(%x in %a : tensor<64xi32>) init(%acc = %{{.*}} : i22)
// ANY: arith.muli %{{.*}} : i16
// ANY: arith.addi %acc, %{{.*}} : i22
// ANY: combine(%l, %r)
// ANY-NEXT: arith.addi %l, %r : i22
// ANY: arith.extui %{{.*}} : i22 to i32
func.func @sum_of_64(%a: tensor<64xi32> {pattern.range = [0, 255]}) -> i32 {
  %zero = arith.constant 0 : i32
  %total = pattern.reduce(%x in %a : tensor<64xi32>) init(%acc = %zero : i32) {
    %m = arith.muli %x, %x : i32
    %s = arith.addi %acc, %m : i32
    pattern.yield %s : i32
  } combine(%l, %r) {
    %t = arith.addi %l, %r : i32
    pattern.yield %t : i32
  }
  func.return %total : i32
}

// A mask bounds what it leaves, and goes where all that it leaves is cut off anyway. The stored
// vector is narrow; the returned one keeps its type.
// CHECK-LABEL: func.func @masked
// CHECK: pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi8> {
// CHECK-NEXT: %mask = arith.constant 15 : i32
// CHECK-NEXT: %low = arith.andi %x, %mask : i32
// CHECK-NEXT: %low_1 = arith.trunci %low : i32 to i8
// CHECK-NEXT: pattern.yield %low_1 : i8
// CHECK: pattern.window<2>(%w in %{{.*}} : tensor<?xi8>) -> tensor<?xi32>
// CHECK: %p = arith.muli %{{.*}} : i8
// CHECK-NEXT: %p_1 = arith.extui %p : i8 to i32
// ANY-LABEL: func.func @masked
// ANY: pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi4> {
// ANY-NEXT: %x_1 = arith.trunci %x : i32 to i4
// ANY-NEXT: pattern.yield %x_1 : i4
func.func @masked(%a: tensor<?xi32>) -> tensor<?xi32> {
  %v = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32> {
    %mask = arith.constant 15 : i32
    %low = arith.andi %x, %mask : i32
    pattern.yield %low : i32
  }
  %d = pattern.window<2>(%w in %v : tensor<?xi32>) -> tensor<?xi32> {
    %i = arith.constant 0 : index
    %j = arith.constant 1 : index
    %x = tensor.extract %w[%i] : tensor<2xi32>
    %y = tensor.extract %w[%j] : tensor<2xi32>
    %p = arith.muli %x, %y : i32
    pattern.yield %p : i32
  }
  func.return %d : tensor<?xi32>
}

// A division of numbers that are not negative needs no sign, one of short ones no pair of
// registers; what nothing is known of stays.
// CHECK-LABEL: func.func @divide
// CHECK: arith.divui %x, %y : i32
// CHECK: arith.divsi %x, %z : i32
// CHECK: arith.divsi %{{.*}} : i32
// CHECK-NEXT: arith.extsi %{{.*}} : i32 to i64
func.func @divide(%a: tensor<?xi32> {pattern.range = [0, 1000]},
                  %b: tensor<?xi32> {pattern.range = [1, 10]}, %c: tensor<?xi32>)
    -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi64>) {
  %q, %r, %s = pattern.map(%x in %a : tensor<?xi32>, %y in %b : tensor<?xi32>,
      %z in %c : tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi64>) {
    %d = arith.divsi %x, %y : i32
    %e = arith.divsi %x, %z : i32
    %u = arith.extsi %z : i32 to i64
    %v = arith.extsi %y : i32 to i64
    %w = arith.divsi %u, %v : i64
    pattern.yield %d, %e, %w : i32, i32, i64
  }
  func.return %q, %r, %s : tensor<?xi32>, tensor<?xi32>, tensor<?xi64>
}

// Low bits of a product need low bits only.
// CHECK-LABEL: func.func @low_bits
// CHECK: arith.muli %{{.*}} : i8
// CHECK-NOT: i32
// CHECK: pattern.yield
func.func @low_bits(%a: tensor<?xi32>) -> tensor<?xi8> {
  %v = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi8> {
    %p = arith.muli %x, %x : i32
    %q = arith.trunci %p : i32 to i8
    pattern.yield %q : i8
  }
  func.return %v : tensor<?xi8>
}
