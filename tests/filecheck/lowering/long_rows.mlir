// RUN: cim-opt %s -p 'pattern-to-upmem{unroll=1 tasklets=2 dpus=4}' | filecheck %s

// Rows of 8 KB: a transfer moves at most 2,048 bytes, so that a row takes several.

// CHECK: upmem.kernel @long_rows_0
// CHECK: [[ROW:%[a-z0-9_]+]] = upmem.wram : memref<1024xi64, #upmem<space wram>>
// CHECK: [[MOST:%[a-z0-9_]+]] = arith.constant 256 : index
// CHECK: scf.for [[I:%[a-z0-9_]+]] = {{%.+}} to {{%.+}} step [[MOST]] {
// CHECK: [[LEFT:%[a-z0-9_]+]] = arith.subi {{%.+}}, [[I]] : index
// CHECK: [[COUNT:%[a-z0-9_]+]] = arith.minui [[LEFT]], [[MOST]] : index
// CHECK: upmem.mram_read {{.*}} to [[ROW]][[[I]]] count [[COUNT]] :
func.func @long_rows(%a: tensor<16384xi64>) -> tensor<16xi64> {
  %y = pattern.group<1024>(%s in %a : tensor<16384xi64>) -> tensor<16xi64> {
    %c1023 = arith.constant 1023 : index
    %r = tensor.extract %s[%c1023] : tensor<1024xi64>
    pattern.yield %r : i64
  }
  func.return %y : tensor<16xi64>
}
