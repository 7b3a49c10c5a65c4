// RUN: cim-opt %s -p 'pattern-to-upmem{unroll=1 tasklets=16 block=256 dpus=4}' | filecheck %s

// 999 windows on 1003 elements: 248 a DPU, of 252 elements, since neighbours overlap by 4.
// The last 7 windows are on the host.

// CHECK: upmem.kernel @differences_0 tasklets 16 () {
// CHECK-DAG: [[IN:%[a-z0-9_]+]] = upmem.wram : memref<64xi32, #upmem<space wram>>
// CHECK-DAG: [[OUT:%[a-z0-9_]+]] = upmem.wram : memref<60xi32, #upmem<space wram>>
// CHECK: upmem.mram_read {{.*}} to [[IN]][
// CHECK: scf.for [[I:%[a-z0-9_]+]] = {{%.+}} to {{%.+}} step {{%.+}} {
// CHECK-NEXT: [[P:%[a-z0-9_]+]] = memref.load [[IN]][[[I]]]
// CHECK-NEXT: [[J:%[a-z0-9_]+]] = arith.addi [[I]], {{%.+}} : index
// CHECK-NEXT: [[Q:%[a-z0-9_]+]] = memref.load [[IN]][[[J]]]
// CHECK-NEXT: [[R:%[a-z0-9_]+]] = arith.subi [[P]], [[Q]] : i32
// CHECK-NEXT: memref.store [[R]], [[OUT]][[[I]]]
// CHECK: func.func @differences
// CHECK-DAG: [[COUNT:%[a-z0-9_]+]] = arith.constant 252 : index
// CHECK-DAG: [[STRIDE:%[a-z0-9_]+]] = arith.constant 248 : index
// CHECK: upmem.host_thread
// CHECK-NEXT: tensor.extract_slice %a[992] [11] [1] : tensor<1003xi32> to tensor<11xi32>
// CHECK: upmem.push %a[{{.*}}] to {{%.+}} at 0 count [[COUNT]] stride [[STRIDE]] : tensor<1003xi32>
// CHECK: upmem.pull {{%.+}} at {{[0-9]+}} count [[STRIDE]] into
func.func @differences(%a: tensor<1003xi32>) -> tensor<999xi32> {
  %y = pattern.window<5>(%s in %a : tensor<1003xi32>) -> tensor<999xi32> {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %p = tensor.extract %s[%c0] : tensor<5xi32>
    %q = tensor.extract %s[%c4] : tensor<5xi32>
    %r = arith.subi %p, %q : i32
    pattern.yield %r : i32
  }
  func.return %y : tensor<999xi32>
}
