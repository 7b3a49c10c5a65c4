// RUN: cim-opt %s | cim-opt | filecheck %s
// RUN: cim-opt %s --print-op-generic | cim-opt | filecheck %s

// Sets and maps are printed as isl writes them.
// CHECK-LABEL: func.func @conv1d(
// CHECK-NEXT: %y = poly.kernel ins(%x, %w : tensor<10xi8>, tensor<2x3xi8>) outs(%z : tensor<2x8xi32>)
// CHECK-SAME: domain <"{ [oc, ow, kw] : 0 <= oc <= 1 and 0 <= ow <= 7 and 0 <= kw <= 2 }">
// CHECK-SAME: accesses [#poly.map<"{ [oc, ow, kw] -> [ow + kw] }">, #poly.map<"{ [oc, ow, kw] -> [oc, kw] }">, #poly.map<"{ [oc, ow, kw] -> [oc, ow] }">] {
// CHECK-NEXT: ^bb0(%a: i8, %b: i8, %acc: i32):
// CHECK: poly.yield %s : i32
// CHECK-NEXT: }
// CHECK-NEXT: func.return %y : tensor<2x8xi32>
func.func @conv1d(%x: tensor<10xi8>, %w: tensor<2x3xi8>, %z: tensor<2x8xi32>) -> tensor<2x8xi32> {
  %y = poly.kernel ins(%x, %w : tensor<10xi8>, tensor<2x3xi8>) outs(%z : tensor<2x8xi32>)
    domain <"{ [oc, ow, kw] : oc >= 0 and oc < 2 and 0 <= ow < 8 and 0 <= kw and kw < 3 }">
    accesses [
      #poly.map<"{ [oc, ow, kw] -> [kw + ow] }">,
      #poly.map<"{ [oc, ow, kw] -> [oc, kw] }">,
      #poly.map<"{ [oc, ow, kw] -> [oc, ow] }">
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

// Directions of reuse, splits, a basis and a schedule, which keeps its floors.
// CHECK-LABEL: func.func @scheduled(
// CHECK: reuse {input = [array<i64: 1, -1>], weight = [array<i64: 1, 0>], output = [array<i64: 0, 1>]}
// CHECK-SAME: splits {o0 = array<i64: 2, 4>}
// CHECK-SAME: basis {time = [array<i64: 1, 0, 0>], row = [array<i64: 0, 0, 1>], column = [array<i64: 0, 1, -1>]}
// CHECK-SAME: schedule <"{ [o, k] -> basis[floor((o)/4), k + (o) mod 4, (o) mod 4] }">
func.func @scheduled(%x: tensor<10xi8>, %w: tensor<3xi8>, %z: tensor<8xi32>) -> tensor<8xi32> {
  %y = poly.kernel ins(%x, %w : tensor<10xi8>, tensor<3xi8>) outs(%z : tensor<8xi32>)
    domain <"{ [o, k] : 0 <= o < 8 and 0 <= k < 3 }">
    accesses [
      #poly.map<"{ [o, k] -> [o + k] }">,
      #poly.map<"{ [o, k] -> [k] }">,
      #poly.map<"{ [o, k] -> [o] }">
    ]
    reuse {input = [array<i64: 1, -1>], weight = [array<i64: 1, 0>], output = [array<i64: 0, 1>]}
    splits {o0 = array<i64: 2, 4>}
    basis {time = [array<i64: 1, 0, 0>], row = [array<i64: 0, 0, 1>], column = [array<i64: 0, 1, -1>]}
    schedule <"{ [o, k] -> basis[floor(o/4), (o mod 4) + k, o mod 4] }"> {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<8xi32>
}

// A padded input, a schedule, a cover and an attribute.
// CHECK-LABEL: func.func @padded(
// CHECK: accesses [#poly.map<"{ [o, k] -> [-1 + o + k] }">,
// CHECK-SAME: ] padded schedule <"{ [o, k] -> [o, k] }">
// CHECK-SAME: cover <dense<2> : tensor<1x1xi32>, dense<1> : tensor<1x3xi32>, [#poly.image<
// CHECK-SAME: macros [1, 2, 1, 4] order "sums" attributes {note = 1 : i32} {
func.func @padded(%x: tensor<8xi8>, %w: tensor<3xi8>, %z: tensor<8xi32>) -> tensor<8xi32> {
  %y = poly.kernel ins(%x, %w : tensor<8xi8>, tensor<3xi8>) outs(%z : tensor<8xi32>)
    domain <"{ [o, k] : 0 <= o < 8 and 0 <= k < 3 }">
    accesses [
      #poly.map<"{ [o, k] -> [o + k - 1] }">,
      #poly.map<"{ [o, k] -> [k] }">,
      #poly.map<"{ [o, k] -> [o] }">
    ] padded schedule <"{ [o, k] -> [o, k] }">
    cover <dense<2> : tensor<1x1xi32>, dense<1> : tensor<1x3xi32>, [#poly.image<
      dense<[[0, 0], [0, 1], [0, 2], [0, 3]]> : tensor<4x2xi32>,
      dense<[[0, 0], [0, 1]]> : tensor<2x2xi32>, dense<> : tensor<0x2xi32>>]>
    macros [1, 2, 1, 4] order "sums" attributes {note = 1 : i32} {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<8xi32>
}

// CHECK-LABEL: func.func @set() attributes {set = #poly.set<"{ [i] : 0 <= i <= 7 }">}
func.func @set() attributes {set = #poly.set<"{ [i] : 0 <= i and i < 8 }">} {
  func.return
}
