// RUN: cim-opt %s | cim-opt | filecheck %s
// RUN: cim-opt %s --print-op-generic | cim-opt | filecheck %s
// RUN: cim-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: upmem.kernel @k tasklets 16 (%n: index, %scale: i32) attributes {note = "kept"} {
// GENERIC: "upmem.kernel"() <{sym_name = "k", tasklets = 16 : i64}> ({
// GENERIC-NEXT: ^{{.*}}(%n: index, %scale: i32):
upmem.kernel @k tasklets 16 (%n: index, %scale: i32) attributes {note = "kept"} {
  // CHECK-NEXT: %t = upmem.tasklet_id : index
  // GENERIC: %t = "upmem.tasklet_id"() : () -> index
  %t = upmem.tasklet_id : index
  // CHECK-NEXT: %m = upmem.mram 1024 : memref<4096xi32, #upmem<space mram>>
  // GENERIC-NEXT: %m = "upmem.mram"() <{offset = 1024 : i64}> : () -> memref<4096xi32, #upmem<space mram>>
  %m = upmem.mram 1024 : memref<4096xi32, #upmem<space mram>>
  // CHECK-NEXT: %w = upmem.wram : memref<256xi32, #upmem<space wram>>
  // GENERIC-NEXT: %w = "upmem.wram"() : () -> memref<256xi32, #upmem<space wram>>
  %w = upmem.wram : memref<256xi32, #upmem<space wram>>
  // CHECK-NEXT: %h = upmem.wram shared {note = 1 : i32} : memref<64xi32, #upmem<space wram>>
  // GENERIC-NEXT: %h = "upmem.wram"() <{shared}> {note = 1 : i32} : () -> memref<64xi32
  %h = upmem.wram shared {note = 1 : i32} : memref<64xi32, #upmem<space wram>>
  // CHECK-NEXT: upmem.mram_read %m[%n] to %w[%t] count %n : memref<4096xi32, #upmem<space mram>>, memref<256xi32, #upmem<space wram>>
  // GENERIC-NEXT: "upmem.mram_read"(%m, %n, %w, %t, %n) :
  upmem.mram_read %m[%n] to %w[%t] count %n : memref<4096xi32, #upmem<space mram>>, memref<256xi32, #upmem<space wram>>
  // CHECK-NEXT: upmem.mram_write %w[%t] to %m[%n] count %n : memref<256xi32, #upmem<space wram>>, memref<4096xi32, #upmem<space mram>>
  // GENERIC-NEXT: "upmem.mram_write"(%m, %n, %w, %t, %n) :
  upmem.mram_write %w[%t] to %m[%n] count %n : memref<256xi32, #upmem<space wram>>, memref<4096xi32, #upmem<space mram>>
  // CHECK-NEXT: upmem.barrier
  // GENERIC-NEXT: "upmem.barrier"() : () -> ()
  upmem.barrier
  // CHECK-NEXT: upmem.critical %t {
  // CHECK-NEXT: memref.store %scale, %h[%t] : memref<64xi32, #upmem<space wram>>
  // CHECK-NEXT: }
  // GENERIC-NEXT: "upmem.critical"(%t) ({
  upmem.critical %t {
    memref.store %scale, %h[%t] : memref<64xi32, #upmem<space wram>>
  }
  // CHECK-NEXT: upmem.return
  // GENERIC: "upmem.return"() : () -> ()
  upmem.return
}

// CHECK-LABEL: upmem.kernel @nothing tasklets 1 () {
upmem.kernel @nothing tasklets 1 () {
  upmem.return
}

// CHECK-LABEL: func.func @transfers
func.func @transfers(%a: tensor<?xi32>, %table: tensor<16xi8>, %n: index, %i: i32, %sizes: tensor<?xi64>) -> tensor<?xi32> {
  // CHECK-NEXT: %set = upmem.alloc %n : !upmem.dpus
  // GENERIC: %set = "upmem.alloc"(%n) : (index) -> !upmem.dpus
  %set = upmem.alloc %n : !upmem.dpus
  // CHECK-NEXT: upmem.push %a[%n] to %set at 1024 count %n stride %n : tensor<?xi32>
  // GENERIC-NEXT: "upmem.push"(%a, %n, %set, %n, %n) <{offset = 1024 : i64}> :
  upmem.push %a[%n] to %set at 1024 count %n stride %n : tensor<?xi32>
  // CHECK-NEXT: upmem.push serial %a[%n] to %set at 1024 count %n stride %n : tensor<?xi32>
  // GENERIC-NEXT: "upmem.push"(%a, %n, %set, %n, %n) <{serial, offset = 1024 : i64}> :
  upmem.push serial %a[%n] to %set at 1024 count %n stride %n : tensor<?xi32>
  // CHECK-NEXT: upmem.broadcast %table to %set at 2048 : tensor<16xi8>
  // GENERIC-NEXT: "upmem.broadcast"(%table, %set) <{offset = 2048 : i64}> :
  upmem.broadcast %table to %set at 2048 : tensor<16xi8>
  // CHECK-NEXT: %t = upmem.launch @k on %set(%n, %i) : (index, i32) -> !upmem.token
  // GENERIC-NEXT: %t = "upmem.launch"(%set, %n, %i) <{kernel = @k}> :
  %t = upmem.launch @k on %set (%n, %i) : (index, i32) -> !upmem.token
  // CHECK-NEXT: upmem.wait %t : !upmem.token
  // GENERIC-NEXT: "upmem.wait"(%t) : (!upmem.token) -> ()
  upmem.wait %t : !upmem.token
  // CHECK-NEXT: %u = upmem.launch @nothing on %set() : () -> !upmem.token
  %u = upmem.launch @nothing on %set () : () -> !upmem.token
  // CHECK-NEXT: %r = upmem.pull %set at 4096 count %n into %a[%n] : tensor<?xi32>
  // GENERIC: %r = "upmem.pull"(%set, %n, %a, %n) <{offset = 4096 : i64}> :
  %r = upmem.pull %set at 4096 count %n into %a[%n] : tensor<?xi32>
  // CHECK-NEXT: %one = upmem.pull serial %set at 4096 count %n into %a[%n] : tensor<?xi32>
  // GENERIC-NEXT: %one = "upmem.pull"(%set, %n, %a, %n) <{serial, offset = 4096 : i64}> :
  %one = upmem.pull serial %set at 4096 count %n into %a[%n] : tensor<?xi32>
  // CHECK-NEXT: %kept = upmem.gather %set at 64 segments %n counts %sizes scale 2 into %a[%n] : tensor<?xi64> -> tensor<?xi32>
  // GENERIC-NEXT: %kept = "upmem.gather"(%set, %n, %sizes, %a, %n) <{offset = 64 : i64, scale = 2 : i64}> :
  %kept = upmem.gather %set at 64 segments %n counts %sizes scale 2 into %a[%n] : tensor<?xi64> -> tensor<?xi32>
  // CHECK-NEXT: upmem.free %set : !upmem.dpus
  // GENERIC-NEXT: "upmem.free"(%set) : (!upmem.dpus) -> ()
  upmem.free %set : !upmem.dpus
  func.return %r : tensor<?xi32>
}

// CHECK-LABEL: func.func @merges
func.func @merges(%l: tensor<?xi32>, %c: tensor<8xi64>, %h: tensor<4xi8>, %p: tensor<?xi8>, %n: index, %i: i32, %j: i64) {
  // CHECK-NEXT: %kept = upmem.compact %l segments %n counts %c scale 3 into %l[%n] : tensor<?xi32>, tensor<8xi64> -> tensor<?xi32>
  // GENERIC: %kept = "upmem.compact"(%l, %n, %c, %l, %n) <{scale = 3 : i64}> :
  %kept = upmem.compact %l segments %n counts %c scale 3 into %l[%n] : tensor<?xi32>, tensor<8xi64> -> tensor<?xi32>
  // CHECK-NEXT: %y, %z, %carry, %carry_1 = upmem.merge_scan exclusive locals(%l, %c : tensor<?xi32>, tensor<8xi64>)
  // CHECK-SAME: totals(%l, %c : tensor<?xi32>, tensor<8xi64>) init(%i, %j : i32, i64)
  // CHECK-SAME: tasklets 16 per_dpu %n chunk %n -> (tensor<?xi32>, tensor<8xi64>) carry(i32, i64)
  // GENERIC: = "upmem.merge_scan"(%l, %c, %l, %c, %i, %j, %n, %n) <{exclusive, tasklets = 16 : i64, operandSegmentSizes = array<i32: 2, 2, 2, 0, 1, 1>, resultSegmentSizes = array<i32: 2, 2>}> ({
  %y, %z, %carry, %carry_1 = upmem.merge_scan exclusive locals(%l, %c : tensor<?xi32>, tensor<8xi64>) totals(%l, %c : tensor<?xi32>, tensor<8xi64>)
      init(%i, %j : i32, i64) tasklets 16 per_dpu %n chunk %n -> (tensor<?xi32>, tensor<8xi64>) carry (i32, i64) {
  ^bb0(%a: i32, %b: i64, %d: i32, %e: i64):
    %s = arith.addi %a, %d : i32
    // CHECK: upmem.yield %{{.*}}, %{{.*}} : i32, i64
    upmem.yield %s, %b : i32, i64
  }
  // CHECK: upmem.merge_scan locals(%l : tensor<?xi32>) totals(%l : tensor<?xi32>) init(%i : i32) shared(%h, %j : tensor<4xi8>, i64) tasklets 2
  // GENERIC: operandSegmentSizes = array<i32: 1, 1, 1, 2, 1, 1>
  %x, %v = upmem.merge_scan locals(%l : tensor<?xi32>) totals(%l : tensor<?xi32>) init(%i : i32) shared(%h, %j : tensor<4xi8>, i64) tasklets 2 per_dpu %n chunk %n -> (tensor<?xi32>) carry (i32) {
  ^bb0(%aa: i32, %bb: i32, %g: tensor<4xi8>, %ee: i64):
    upmem.yield %aa : i32
  }
  // CHECK: %s1, %s2 = upmem.merge_reduce partials(%l, %p : tensor<?xi32>, tensor<?xi8>) init(%i, %h : i32, tensor<4xi8>)
  // CHECK-SAME: strides [2, 8] -> (i32, tensor<4xi8>)
  // GENERIC: = "upmem.merge_reduce"(%l, %p, %i, %h) <{strides = array<i64: 2, 8>, operandSegmentSizes = array<i32: 2, 2>}> ({
  %s1, %s2 = upmem.merge_reduce partials(%l, %p : tensor<?xi32>, tensor<?xi8>) init(%i, %h : i32, tensor<4xi8>) strides [2, 8] -> (i32, tensor<4xi8>) {
  ^bb0(%a: i32, %b: i8, %d: i32, %e: i8):
    %s = arith.addi %a, %d : i32
    upmem.yield %s, %b : i32, i8
  }
  // CHECK: %o = upmem.host_thread -> (tensor<?xi32>) attributes {note = "kept"} {
  // CHECK-NEXT: upmem.yield %l : tensor<?xi32>
  // CHECK-NEXT: }
  // GENERIC: %o = "upmem.host_thread"() ({
  // GENERIC-NEXT: "upmem.yield"(%l) : (tensor<?xi32>) -> ()
  %o = upmem.host_thread -> (tensor<?xi32>) attributes {note = "kept"} {
    upmem.yield %l : tensor<?xi32>
  }
  func.return
}
