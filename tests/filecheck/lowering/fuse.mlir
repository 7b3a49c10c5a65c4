// RUN: cim-opt %s -p 'pattern-to-upmem{unroll=1 fuse=false tasklets=16}' | filecheck %s
// RUN: cim-opt %s -p 'pattern-to-upmem{unroll=1 tasklets=16}' | filecheck %s --check-prefix=FUSED

// Unfused, the squares stay in MRAM between the two loops, with a barrier: one launch, and the
// host neither pulls nor pushes them. Fused, there is one loop and no array for them.

// CHECK: upmem.kernel @squares_0 tasklets 16
// CHECK: upmem.mram 0 :
// CHECK: [[SQUARES:%[a-z0-9_]+]] = upmem.mram [[AT:[0-9]+]] :
// CHECK: upmem.mram_write {{.*}} to [[SQUARES]][
// CHECK: upmem.barrier
// CHECK: upmem.mram_read [[SQUARES]][
// CHECK: upmem.return
// CHECK: func.func @squares
// CHECK: upmem.push
// CHECK-NOT: upmem.push
// CHECK: upmem.launch @squares_0
// CHECK-NOT: upmem.pull {{.*}} at [[AT]]
// CHECK-NOT: upmem.launch
// CHECK: func.return

// FUSED: upmem.kernel @squares_0 tasklets 16
// FUSED: upmem.mram_read
// FUSED: arith.muli
// FUSED-NEXT: arith.addi
// FUSED-NOT: upmem.mram_read
// FUSED: upmem.return
func.func @squares(%a: tensor<?xi32>) -> i32 {
  %zero = arith.constant 0 : i32
  %s = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32> {
    %p = arith.muli %x, %x : i32
    pattern.yield %p : i32
  }
  %r = pattern.reduce(%x in %s : tensor<?xi32>) init(%acc = %zero : i32) {
    %t = arith.addi %acc, %x : i32
    pattern.yield %t : i32
  }
  func.return %r : i32
}
