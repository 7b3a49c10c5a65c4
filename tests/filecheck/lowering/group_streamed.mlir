// RUN: cim-opt %s -p 'pattern-to-upmem{unroll=1 tasklets=16 dpus=4 block=1024}' | filecheck %s

// Rows of 12,000 bytes go through a buffer of 1,024: the nested reduce runs piece by piece.

// CHECK: upmem.kernel @gemv_0 tasklets 16
// CHECK: %m_wram = upmem.wram : memref<256xi32, #upmem<space wram>>
// CHECK: scf.for [[ROW:%[a-z0-9_]+]] = %low to %high step
// CHECK: [[START:%[a-z0-9_]+]] = arith.muli
// CHECK-NEXT: [[SUM:%[a-z0-9_]+]] = scf.for [[P:%[a-z0-9_]+]] = {{%.+}} to {{%.+}} step {{%.+}} iter_args
// CHECK: [[PLACE:%[a-z0-9_]+]] = arith.addi [[START]], [[P]] : index
// CHECK-NEXT: upmem.mram_read %m_mram[[[PLACE]]] to %m_wram[
// CHECK: scf.for [[I:%[a-z0-9_]+]] =
// CHECK-NEXT: memref.load %m_wram[[[I]]]
// CHECK-NEXT: [[AT:%[a-z0-9_]+]] = arith.addi [[P]], [[I]] : index
// CHECK-NEXT: memref.load %table[[[AT]]]
// CHECK: memref.store [[SUM]], %out_wram[
// CHECK: upmem.mram_write %out_wram
func.func @gemv(%m: tensor<?xi32>, %v: tensor<3000xi32>) -> tensor<?xi32> {
  %y = pattern.group<3000>(%row in %m : tensor<?xi32>) shared(%w = %v : tensor<3000xi32>) -> tensor<?xi32> {
    %zero = arith.constant 0 : i32
    %s = pattern.reduce(%x in %row : tensor<3000xi32>, %p in %w : tensor<3000xi32>) init(%acc = %zero : i32) {
      %u = arith.muli %x, %p : i32
      %t = arith.addi %acc, %u : i32
      pattern.yield %t : i32
    } combine(%l, %h) {
      %t = arith.addi %l, %h : i32
      pattern.yield %t : i32
    }
    pattern.yield %s : i32
  }
  func.return %y : tensor<?xi32>
}
