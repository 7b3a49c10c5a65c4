// RUN: cim-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: a kernel has 3 accesses, got 2
func.func @f(%x: tensor<4xi8>, %w: tensor<4xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xi8>, tensor<4xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k <= 3 }">
    accesses [#poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [0] }">] {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<1xi32>
}

// -----

// CHECK: a domain is bounded, got { [k] : k >= 0 }
func.func @f(%x: tensor<4xi8>, %w: tensor<4xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xi8>, tensor<4xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k }">
    accesses [#poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [0] }">] {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<1xi32>
}

// -----

// CHECK: the schedule does not place every point of the domain
func.func @f(%x: tensor<4xi8>, %w: tensor<4xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xi8>, tensor<4xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k <= 3 }">
    accesses [#poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [0] }">]
    schedule <"{ [k] -> [k] : k > 0 }"> {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<1xi32>
}

// -----

// CHECK: access to the weight takes points of the domain to 1 indices, got { [k] -> [k, 0] }
func.func @f(%x: tensor<4xi8>, %w: tensor<4xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xi8>, tensor<4xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k <= 3 }">
    accesses [#poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [k, 0] }">, #poly.map<"{ [k] -> [0] }">] {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<1xi32>
}

// -----

// Two loops in an access to a domain of one.
// CHECK: access to the input takes points of the domain to 1 indices, got { [k, j] -> [k + j] }
func.func @f(%x: tensor<4xi8>, %w: tensor<4xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xi8>, tensor<4xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k <= 3 }">
    accesses [#poly.map<"{ [k, j] -> [k + j] }">, #poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [0] }">] {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<1xi32>
}

// -----

// CHECK: access to the input gives each point one element
func.func @f(%x: tensor<4xi8>, %w: tensor<4xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xi8>, tensor<4xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k <= 3 }">
    accesses [#poly.map<"{ [k] -> [j] : 0 <= j <= k }">, #poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [0] }">] {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<1xi32>
}

// -----

// CHECK: access to the output gives each point one element
func.func @f(%x: tensor<4xi8>, %w: tensor<4xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xi8>, tensor<4xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k <= 3 }">
    accesses [#poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [0] : k < 3 }">] {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<1xi32>
}

// -----

// CHECK: access to the input leaves its tensor of 4, at { [-1] }
func.func @f(%x: tensor<4xi8>, %w: tensor<4xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xi8>, tensor<4xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k <= 3 }">
    accesses [#poly.map<"{ [k] -> [k - 1] }">, #poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [0] }">] {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<1xi32>
}

// -----

// Only the input may be padded.
// CHECK: access to the weight leaves its tensor of 4x2, at { [0, 2] }
func.func @f(%x: tensor<4xi8>, %w: tensor<4x2xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xi8>, tensor<4x2xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k <= 3 }">
    accesses [#poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [0, k] }">, #poly.map<"{ [k] -> [0] }">] padded {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<1xi32>
}

// -----

// CHECK: body takes the elements (i8, i8, i32), got (i8, i32, i32)
func.func @f(%x: tensor<4xi8>, %w: tensor<4xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xi8>, tensor<4xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k <= 3 }">
    accesses [#poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [0] }">] {
  ^bb0(%a: i8, %b: i32, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<1xi32>
}

// -----

// CHECK: body ends in poly.yield of one i32
func.func @f(%x: tensor<4xi8>, %w: tensor<4xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xi8>, tensor<4xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k <= 3 }">
    accesses [#poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [0] }">] {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %a : i8
  }
  func.return %y : tensor<1xi32>
}

// -----

// CHECK: weight has a static shape, got tensor<?xi8>
func.func @f(%x: tensor<4xi8>, %w: tensor<?xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xi8>, tensor<?xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k <= 3 }">
    accesses [#poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [0] }">] {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<1xi32>
}

// -----

// CHECK: input holds integers, got tensor<4xf32>
func.func @f(%x: tensor<4xf32>, %w: tensor<4xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xf32>, tensor<4xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k <= 3 }">
    accesses [#poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [0] }">] {
  ^bb0(%a: f32, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<1xi32>
}

// -----

// CHECK: macros are counted along 4 dimensions, at least 1 along each, got [1, 0, 1, 1]
func.func @f(%x: tensor<4xi8>, %w: tensor<4xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xi8>, tensor<4xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k <= 3 }">
    accesses [#poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [0] }">]
    macros [1, 0, 1, 1] {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<1xi32>
}

// -----

// CHECK: a lattice has a vector an axis, got 2 of 1
func.func @f(%x: tensor<8xi8>, %w: tensor<3xi8>, %z: tensor<6xi32>) -> tensor<6xi32> {
  %y = poly.kernel ins(%x, %w : tensor<8xi8>, tensor<3xi8>) outs(%z : tensor<6xi32>)
    domain <"{ [o, k] : 0 <= o <= 5 and 0 <= k <= 2 }">
    accesses [#poly.map<"{ [o, k] -> [o + k] }">, #poly.map<"{ [o, k] -> [k] }">, #poly.map<"{ [o, k] -> [o] }">]
    cover <dense<2> : tensor<2x1xi32>, dense<1> : tensor<1x3xi32>, [#poly.image<dense<[[0, 0], [0, 1], [0, 2], [0, 3]]> : tensor<4x2xi32>, dense<[[0, 0], [0, 1]]> : tensor<2x2xi32>, dense<> : tensor<0x2xi32>>]> {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<6xi32>
}

// -----

// CHECK: channels are output, input and packed ones, at least 1 each, in one line, got tensor<1x2xi32>
func.func @f(%x: tensor<8xi8>, %w: tensor<3xi8>, %z: tensor<6xi32>) -> tensor<6xi32> {
  %y = poly.kernel ins(%x, %w : tensor<8xi8>, tensor<3xi8>) outs(%z : tensor<6xi32>)
    domain <"{ [o, k] : 0 <= o <= 5 and 0 <= k <= 2 }">
    accesses [#poly.map<"{ [o, k] -> [o + k] }">, #poly.map<"{ [o, k] -> [k] }">, #poly.map<"{ [o, k] -> [o] }">]
    cover <dense<2> : tensor<1x1xi32>, dense<1> : tensor<1x2xi32>, [#poly.image<dense<[[0, 0], [0, 1], [0, 2], [0, 3]]> : tensor<4x2xi32>, dense<[[0, 0], [0, 1]]> : tensor<2x2xi32>, dense<> : tensor<0x2xi32>>]> {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<6xi32>
}

// -----

// CHECK: channels are output, input and packed ones, at least 1 each, in one line, got tensor<1x3xi32>
func.func @f(%x: tensor<8xi8>, %w: tensor<3xi8>, %z: tensor<6xi32>) -> tensor<6xi32> {
  %y = poly.kernel ins(%x, %w : tensor<8xi8>, tensor<3xi8>) outs(%z : tensor<6xi32>)
    domain <"{ [o, k] : 0 <= o <= 5 and 0 <= k <= 2 }">
    accesses [#poly.map<"{ [o, k] -> [o + k] }">, #poly.map<"{ [o, k] -> [k] }">, #poly.map<"{ [o, k] -> [o] }">]
    cover <dense<2> : tensor<1x1xi32>, dense<0> : tensor<1x3xi32>, [#poly.image<dense<[[0, 0], [0, 1], [0, 2], [0, 3]]> : tensor<4x2xi32>, dense<[[0, 0], [0, 1]]> : tensor<2x2xi32>, dense<> : tensor<0x2xi32>>]> {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<6xi32>
}

// -----

// CHECK: rows of an image or cover are a table of 2 columns, got tensor<1x3xi32>
func.func @f(%x: tensor<8xi8>, %w: tensor<3xi8>, %z: tensor<6xi32>) -> tensor<6xi32> {
  %y = poly.kernel ins(%x, %w : tensor<8xi8>, tensor<3xi8>) outs(%z : tensor<6xi32>)
    domain <"{ [o, k] : 0 <= o <= 5 and 0 <= k <= 2 }">
    accesses [#poly.map<"{ [o, k] -> [o + k] }">, #poly.map<"{ [o, k] -> [k] }">, #poly.map<"{ [o, k] -> [o] }">]
    cover <dense<2> : tensor<1x1xi32>, dense<1> : tensor<1x3xi32>, [#poly.image<dense<0> : tensor<1x3xi32>, dense<0> : tensor<1x3xi32>, dense<> : tensor<0x2xi32>>]> {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<6xi32>
}

// -----

// CHECK: columns of an image or cover are a table of 2 columns, got tensor<1x3xi32>
func.func @f(%x: tensor<8xi8>, %w: tensor<3xi8>, %z: tensor<6xi32>) -> tensor<6xi32> {
  %y = poly.kernel ins(%x, %w : tensor<8xi8>, tensor<3xi8>) outs(%z : tensor<6xi32>)
    domain <"{ [o, k] : 0 <= o <= 5 and 0 <= k <= 2 }">
    accesses [#poly.map<"{ [o, k] -> [o + k] }">, #poly.map<"{ [o, k] -> [k] }">, #poly.map<"{ [o, k] -> [o] }">]
    cover <dense<2> : tensor<1x1xi32>, dense<1> : tensor<1x3xi32>, [#poly.image<dense<[[0, 0], [0, 1], [0, 2], [0, 3]]> : tensor<4x2xi32>, dense<0> : tensor<1x3xi32>, dense<> : tensor<0x2xi32>>]> {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<6xi32>
}

// -----

// CHECK: lattice of an image or cover are a table, got tensor<1xi32>
func.func @f(%x: tensor<8xi8>, %w: tensor<3xi8>, %z: tensor<6xi32>) -> tensor<6xi32> {
  %y = poly.kernel ins(%x, %w : tensor<8xi8>, tensor<3xi8>) outs(%z : tensor<6xi32>)
    domain <"{ [o, k] : 0 <= o <= 5 and 0 <= k <= 2 }">
    accesses [#poly.map<"{ [o, k] -> [o + k] }">, #poly.map<"{ [o, k] -> [k] }">, #poly.map<"{ [o, k] -> [o] }">]
    cover <dense<2> : tensor<1xi32>, dense<1> : tensor<1x3xi32>, [#poly.image<dense<[[0, 0], [0, 1], [0, 2], [0, 3]]> : tensor<4x2xi32>, dense<[[0, 0], [0, 1]]> : tensor<2x2xi32>, dense<> : tensor<0x2xi32>>]> {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<6xi32>
}

// -----

// CHECK: an image has rows and columns, got 4 and 0
func.func @f(%x: tensor<8xi8>, %w: tensor<3xi8>, %z: tensor<6xi32>) -> tensor<6xi32> {
  %y = poly.kernel ins(%x, %w : tensor<8xi8>, tensor<3xi8>) outs(%z : tensor<6xi32>)
    domain <"{ [o, k] : 0 <= o <= 5 and 0 <= k <= 2 }">
    accesses [#poly.map<"{ [o, k] -> [o + k] }">, #poly.map<"{ [o, k] -> [k] }">, #poly.map<"{ [o, k] -> [o] }">]
    cover <dense<2> : tensor<1x1xi32>, dense<1> : tensor<1x3xi32>, [#poly.image<dense<[[0, 0], [0, 1], [0, 2], [0, 3]]> : tensor<4x2xi32>, dense<> : tensor<0x2xi32>, dense<> : tensor<0x2xi32>>]> {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<6xi32>
}

// -----

// CHECK: what an image drops is a pair of its 4 rows and 2 columns, got (4, 0)
func.func @f(%x: tensor<8xi8>, %w: tensor<3xi8>, %z: tensor<6xi32>) -> tensor<6xi32> {
  %y = poly.kernel ins(%x, %w : tensor<8xi8>, tensor<3xi8>) outs(%z : tensor<6xi32>)
    domain <"{ [o, k] : 0 <= o <= 5 and 0 <= k <= 2 }">
    accesses [#poly.map<"{ [o, k] -> [o + k] }">, #poly.map<"{ [o, k] -> [k] }">, #poly.map<"{ [o, k] -> [o] }">]
    cover <dense<2> : tensor<1x1xi32>, dense<1> : tensor<1x3xi32>, [#poly.image<dense<[[0, 0], [0, 1], [0, 2], [0, 3]]> : tensor<4x2xi32>, dense<[[0, 0], [0, 1]]> : tensor<2x2xi32>, dense<[[4, 0]]> : tensor<1x2xi32>>]> {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<6xi32>
}

// -----

// CHECK: dropped of an image or cover are a table of 2 columns, got tensor<1x3xi32>
func.func @f(%x: tensor<8xi8>, %w: tensor<3xi8>, %z: tensor<6xi32>) -> tensor<6xi32> {
  %y = poly.kernel ins(%x, %w : tensor<8xi8>, tensor<3xi8>) outs(%z : tensor<6xi32>)
    domain <"{ [o, k] : 0 <= o <= 5 and 0 <= k <= 2 }">
    accesses [#poly.map<"{ [o, k] -> [o + k] }">, #poly.map<"{ [o, k] -> [k] }">, #poly.map<"{ [o, k] -> [o] }">]
    cover <dense<2> : tensor<1x1xi32>, dense<1> : tensor<1x3xi32>, [#poly.image<dense<[[0, 0], [0, 1], [0, 2], [0, 3]]> : tensor<4x2xi32>, dense<[[0, 0], [0, 1]]> : tensor<2x2xi32>, dense<0> : tensor<1x3xi32>>]> {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<6xi32>
}

// -----

// CHECK: reuse has input, weight, output, got input, weight
func.func @f(%x: tensor<4xi8>, %w: tensor<4xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xi8>, tensor<4xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k <= 3 }">
    accesses [#poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [0] }">]
    reuse {input = [], weight = []} {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<1xi32>
}

// -----

// CHECK: reuse has vectors of i64, got 1 : i32 for input
func.func @f(%x: tensor<4xi8>, %w: tensor<4xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xi8>, tensor<4xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k <= 3 }">
    accesses [#poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [0] }">]
    reuse {input = 1 : i32, weight = [], output = []} {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<1xi32>
}

// -----

// CHECK: reuse has vectors of i64, got 1 : i32 for weight
func.func @f(%x: tensor<4xi8>, %w: tensor<4xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xi8>, tensor<4xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k <= 3 }">
    accesses [#poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [0] }">]
    reuse {input = [], weight = [1 : i32], output = []} {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<1xi32>
}

// -----

// CHECK: vectors of basis are equally long, got [1, 2]
func.func @f(%x: tensor<4xi8>, %w: tensor<4xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xi8>, tensor<4xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k <= 3 }">
    accesses [#poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [0] }">]
    basis {time = [array<i64: 1>], row = [array<i64: 1, 0>], column = []} {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<1xi32>
}

// -----

// CHECK: levels of a split are 2 or more, got array<i64: 4, 1> for k0
func.func @f(%x: tensor<4xi8>, %w: tensor<4xi8>, %z: tensor<1xi32>) -> tensor<1xi32> {
  %y = poly.kernel ins(%x, %w : tensor<4xi8>, tensor<4xi8>) outs(%z : tensor<1xi32>)
    domain <"{ [k] : 0 <= k <= 3 }">
    accesses [#poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [k] }">, #poly.map<"{ [k] -> [0] }">]
    splits {k0 = array<i64: 4, 1>} {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    poly.yield %acc : i32
  }
  func.return %y : tensor<1xi32>
}
