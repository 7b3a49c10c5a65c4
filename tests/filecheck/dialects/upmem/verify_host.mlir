// RUN: cim-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: source is a 1-D tensor, got tensor<2x2xi32>
func.func @f(%a: tensor<2x2xi32>, %set: !upmem.dpus, %n: index) {
  upmem.push %a[%n] to %set at 0 count %n stride %n : tensor<2x2xi32>
  func.return
}

// -----

// CHECK: source is a 1-D tensor, got tensor<2x2xi32>
func.func @f(%a: tensor<2x2xi32>, %set: !upmem.dpus) {
  upmem.broadcast %a to %set at 0 : tensor<2x2xi32>
  func.return
}

// -----

// CHECK: dest is a 1-D tensor, got tensor<2x2xi32>
func.func @f(%a: tensor<2x2xi32>, %set: !upmem.dpus, %n: index) {
  %r = upmem.pull %set at 0 count %n into %a[%n] : tensor<2x2xi32>
  func.return
}

// -----

// CHECK: no memory size for elements of i4
func.func @f(%a: tensor<8xi4>, %set: !upmem.dpus) {
  upmem.broadcast %a to %set at 0 : tensor<8xi4>
  func.return
}

// -----

// CHECK: no memory size for elements of index
func.func @f(%a: tensor<8xindex>, %set: !upmem.dpus) {
  upmem.broadcast %a to %set at 0 : tensor<8xindex>
  func.return
}

// -----

// CHECK: MRAM offsets are multiples of 8 bytes, got 12
func.func @f(%a: tensor<8xi32>, %set: !upmem.dpus, %n: index) {
  upmem.push %a[%n] to %set at 12 count %n stride %n : tensor<8xi32>
  func.return
}

// -----

// CHECK: MRAM offsets are multiples of 8 bytes, got -8
func.func @f(%a: tensor<8xi32>, %set: !upmem.dpus) {
  upmem.broadcast %a to %set at -8 : tensor<8xi32>
  func.return
}

// -----

// CHECK: MRAM offsets are multiples of 8 bytes, got 4
func.func @f(%a: tensor<8xi32>, %set: !upmem.dpus, %n: index) {
  %r = upmem.pull %set at 4 count %n into %a[%n] : tensor<8xi32>
  func.return
}

// -----

// CHECK: data is a 1-D tensor, got tensor<2x2xi32>
func.func @f(%a: tensor<2x2xi32>, %c: tensor<4xi64>, %n: index, %d: tensor<?xi32>) {
  %r = upmem.compact %a segments %n counts %c scale 1 into %d[%n] : tensor<2x2xi32>, tensor<4xi64> -> tensor<?xi32>
  func.return
}

// -----

// CHECK: counts are i64, got i32
func.func @f(%a: tensor<8xi32>, %n: index, %d: tensor<?xi32>) {
  %r = upmem.compact %a segments %n counts %a scale 1 into %d[%n] : tensor<8xi32>, tensor<8xi32> -> tensor<?xi32>
  func.return
}

// -----

// CHECK: dest has the elements of data
func.func @f(%a: tensor<8xi32>, %c: tensor<4xi64>, %n: index, %d: tensor<?xi8>) {
  %r = upmem.compact %a segments %n counts %c scale 1 into %d[%n] : tensor<8xi32>, tensor<4xi64> -> tensor<?xi8>
  func.return
}

// -----

// CHECK: counts are i64, got i32
func.func @f(%set: !upmem.dpus, %c: tensor<8xi32>, %n: index) {
  %r = upmem.gather %set at 0 segments %n counts %c scale 1 into %c[%n] : tensor<8xi32> -> tensor<8xi32>
  func.return
}

// -----

// CHECK: dest is a 1-D tensor, got tensor<2x2xi32>
func.func @f(%set: !upmem.dpus, %c: tensor<8xi64>, %d: tensor<2x2xi32>, %n: index) {
  %r = upmem.gather %set at 0 segments %n counts %c scale 1 into %d[%n] : tensor<8xi64> -> tensor<2x2xi32>
  func.return
}

// -----

// CHECK: has as many locals as totals and initial values, at least one
func.func @f(%a: tensor<8xi32>, %i: i32, %n: index) {
  %y, %c = upmem.merge_scan locals(%a : tensor<8xi32>) totals(%a, %a : tensor<8xi32>, tensor<8xi32>)
      init(%i : i32) tasklets 16 per_dpu %n chunk %n -> (tensor<8xi32>) carry (i32) {
  ^bb0(%l: i32, %r: i32):
    upmem.yield %l : i32
  }
  func.return
}

// -----

// CHECK: locals, totals and results have elements of init's types
func.func @f(%a: tensor<8xi32>, %b: tensor<8xi8>, %i: i32, %n: index) {
  %y, %c = upmem.merge_scan locals(%a : tensor<8xi32>) totals(%b : tensor<8xi8>)
      init(%i : i32) tasklets 16 per_dpu %n chunk %n -> (tensor<8xi32>) carry (i32) {
  ^bb0(%l: i32, %r: i32):
    upmem.yield %l : i32
  }
  func.return
}

// -----

// CHECK: scanned data is a 1-D tensor, got tensor<2x2xi32>
func.func @f(%a: tensor<2x2xi32>, %i: i32, %n: index) {
  %y, %c = upmem.merge_scan locals(%a : tensor<2x2xi32>) totals(%a : tensor<2x2xi32>)
      init(%i : i32) tasklets 16 per_dpu %n chunk %n -> (tensor<2x2xi32>) carry (i32) {
  ^bb0(%l: i32, %r: i32):
    upmem.yield %l : i32
  }
  func.return
}

// -----

// CHECK: combine region takes the types of init twice, then the shared ones
func.func @f(%a: tensor<8xi32>, %i: i32, %n: index) {
  %y, %c = upmem.merge_scan locals(%a : tensor<8xi32>) totals(%a : tensor<8xi32>)
      init(%i : i32) tasklets 16 per_dpu %n chunk %n -> (tensor<8xi32>) carry (i32) {
  ^bb0(%l: i32):
    upmem.yield %l : i32
  }
  func.return
}

// -----

// CHECK: combine region yields the types of init
func.func @f(%a: tensor<8xi32>, %i: i32) {
  %s = upmem.merge_reduce partials(%a : tensor<8xi32>) init(%i : i32) strides [2] -> (i32) {
  ^bb0(%l: i32, %r: i32):
    upmem.yield
  }
  func.return
}

// -----

// CHECK: has as many partials as strides and initial values
func.func @f(%a: tensor<8xi32>, %i: i32) {
  %s = upmem.merge_reduce partials(%a : tensor<8xi32>) init(%i : i32) strides [2, 2] -> (i32) {
  ^bb0(%l: i32, %r: i32):
    upmem.yield %l : i32
  }
  func.return
}

// -----

// CHECK: partials have the elements of init
func.func @f(%a: tensor<8xi64>, %i: tensor<4xi32>) {
  %s = upmem.merge_reduce partials(%a : tensor<8xi64>) init(%i : tensor<4xi32>) strides [4] -> (tensor<4xi32>) {
  ^bb0(%l: i32, %r: i32):
    upmem.yield %l : i32
  }
  func.return
}

// -----

// CHECK: partials is a 1-D tensor, got tensor<2x2xi32>
func.func @f(%a: tensor<2x2xi32>, %i: i32) {
  %s = upmem.merge_reduce partials(%a : tensor<2x2xi32>) init(%i : i32) strides [2] -> (i32) {
  ^bb0(%l: i32, %r: i32):
    upmem.yield %l : i32
  }
  func.return
}

// -----

// CHECK: yields its results
func.func @f(%a: tensor<8xi32>) {
  %r = upmem.host_thread -> (tensor<8xi32>) {
    upmem.yield
  }
  func.return
}

// -----

// CHECK: 'upmem.yield' expects parent op
func.func @f(%a: tensor<8xi32>) {
  upmem.yield %a : tensor<8xi32>
}
