// RUN: cim-opt %s -p 'pattern-to-upmem{unroll=1 tasklets=16 block=256}' | filecheck %s

// 16 copies of 256 bins fit: each tasklet has its own and updates it in place, without a mutex.
// Then each merges 16 bins over all copies.

// CHECK: upmem.kernel @histogram_0 tasklets 16
// CHECK: [[BINS:%[a-z0-9_]+]] = upmem.wram shared : memref<4096xi32, #upmem<space wram>>
// CHECK: [[OWN:%[a-z0-9_]+]] = arith.muli %tasklet, {{%.+}} : index
// CHECK: scf.for
// CHECK: memref.store {{%.+}}, [[BINS]]
// CHECK: upmem.mram_read
// CHECK-NOT: upmem.critical
// CHECK: [[Q:%[a-z0-9_]+]] = arith.andi {{%.+}}, {{%.+}} : i32
// CHECK-NEXT: [[I:%[a-z0-9_]+]] = arith.index_cast [[Q]] : i32 to index
// CHECK-NEXT: [[AT:%[a-z0-9_]+]] = arith.addi {{%.+}}, [[I]] : index
// CHECK-NEXT: [[OLD:%[a-z0-9_]+]] = memref.load [[BINS]][[[AT]]]
// CHECK-NEXT: [[NEW:%[a-z0-9_]+]] = arith.addi [[OLD]], {{%.+}} : i32
// CHECK-NEXT: memref.store [[NEW]], [[BINS]][[[AT]]]
// CHECK: upmem.barrier
// CHECK: scf.for
// CHECK: scf.for
// CHECK: upmem.mram_write [[BINS]]
// CHECK: func.func @histogram
// CHECK: upmem.merge_reduce partials({{.*}}) init({{%.+}} : tensor<256xi32>) strides [256] -> (tensor<256xi32>) {
// CHECK: pattern.map
func.func @histogram(%a: tensor<?xi32>) -> tensor<256xi32> {
  %z = arith.constant dense<0> : tensor<256xi32>
  %y = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %z : tensor<256xi32>) {
    %b = arith.constant 255 : i32
    %q = arith.andi %x, %b : i32
    %i = arith.index_cast %q : i32 to index
    %v = tensor.extract %acc[%i] : tensor<256xi32>
    %one = arith.constant 1 : i32
    %w = arith.addi %v, %one : i32
    %u = tensor.insert %w into %acc[%i] : tensor<256xi32>
    pattern.yield %u : tensor<256xi32>
  } combine(%l, %r) {
    %s = arith.addi %l, %r : i32
    pattern.yield %s : i32
  }
  func.return %y : tensor<256xi32>
}
