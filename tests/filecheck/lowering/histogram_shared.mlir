// RUN: cim-opt %s -p 'pattern-to-upmem{unroll=1 tasklets=16 block=256}' | filecheck %s

// 16 copies of 4,096 bins do not fit into 64 KB, two do: 8 tasklets share one, under its mutex.
// What needs no bin is computed outside of the critical section.

// CHECK: upmem.kernel @histogram_0 tasklets 16
// CHECK: [[BINS:%[a-z0-9_]+]] = upmem.wram shared : memref<8192xi32, #upmem<space wram>>
// CHECK: [[COPIES:%[a-z0-9_]+]] = arith.constant 2 : index
// CHECK: [[FILLS:%[a-z0-9_]+]] = arith.cmpi ult, %tasklet, [[COPIES]] : index
// CHECK-NEXT: scf.if [[FILLS]] {
// CHECK: memref.store {{%.+}}, [[BINS]]
// CHECK: upmem.barrier
// CHECK-NEXT: [[Q:%[a-z0-9_]+]] = arith.divui %tasklet, [[COPIES]] : index
// CHECK-NEXT: [[P:%[a-z0-9_]+]] = arith.muli [[Q]], [[COPIES]] : index
// CHECK-NEXT: [[OWN:%[a-z0-9_]+]] = arith.subi %tasklet, [[P]] : index
// CHECK: upmem.mram_read
// CHECK: arith.andi {{%.+}}, {{%.+}} : i32
// CHECK-NEXT: [[I:%[a-z0-9_]+]] = arith.index_cast {{%.+}} : i32 to index
// CHECK-NEXT: upmem.critical [[OWN]] {
// CHECK-NEXT: [[AT:%[a-z0-9_]+]] = arith.addi {{%.+}}, [[I]] : index
// CHECK-NEXT: [[OLD:%[a-z0-9_]+]] = memref.load [[BINS]][[[AT]]]
// CHECK-NEXT: [[NEW:%[a-z0-9_]+]] = arith.addi [[OLD]], {{%.+}} : i32
// CHECK-NEXT: memref.store [[NEW]], [[BINS]][[[AT]]]
// CHECK-NEXT: }
// CHECK: upmem.barrier
// CHECK: upmem.mram_write [[BINS]]
func.func @histogram(%a: tensor<?xi32>) -> tensor<4096xi32> {
  %z = arith.constant dense<0> : tensor<4096xi32>
  %y = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %z : tensor<4096xi32>) {
    %b = arith.constant 4095 : i32
    %q = arith.andi %x, %b : i32
    %i = arith.index_cast %q : i32 to index
    %v = tensor.extract %acc[%i] : tensor<4096xi32>
    %one = arith.constant 1 : i32
    %w = arith.addi %v, %one : i32
    %u = tensor.insert %w into %acc[%i] : tensor<4096xi32>
    pattern.yield %u : tensor<4096xi32>
  } combine(%l, %r) {
    %s = arith.addi %l, %r : i32
    pattern.yield %s : i32
  }
  func.return %y : tensor<4096xi32>
}
