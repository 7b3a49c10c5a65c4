// RUN: cim-opt %s -p 'convert-pattern-to-simdram{machine="%S/simdram_small.toml"}' | filecheck %s

// Every bin has an accumulator of its own, updated where the lane's index is that bin. 11 bins of
// 32 bits at a time, then the last 9.

// CHECK: [[X:%[a-z0-9_]+]] = simdram.transpose %a[
// CHECK-COUNT-11: simdram.bbop eq(
// CHECK: [[FIRST:%[a-z0-9_:]+]] = scf.for
// CHECK-COUNT-11: simdram.bbop eq(
// CHECK: scf.yield
// CHECK-COUNT-11: simdram.read
// CHECK: tensor.insert {{.*}} : tensor<20xi32>
// CHECK-COUNT-9: simdram.bbop eq(
// CHECK: scf.for
// CHECK-COUNT-9: simdram.bbop eq(
// CHECK: scf.yield
// CHECK-COUNT-9: simdram.read
// CHECK: func.return
func.func @count(%a: tensor<128xi8>) -> tensor<20xi32> {
  %zeros = arith.constant dense<0> : tensor<20xi32>
  %h = pattern.reduce(%x in %a : tensor<128xi8>) init(%acc = %zeros : tensor<20xi32>) {
    %one = arith.constant 1 : i32
    %i = arith.index_cast %x : i8 to index
    %o = tensor.extract %acc[%i] : tensor<20xi32>
    %n = arith.addi %o, %one : i32
    %u = tensor.insert %n into %acc[%i] : tensor<20xi32>
    pattern.yield %u : tensor<20xi32>
  } combine(%l, %r) {
    %s = arith.addi %l, %r : i32
    pattern.yield %s : i32
  }
  func.return %h : tensor<20xi32>
}
