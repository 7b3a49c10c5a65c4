// RUN: cim-opt %s -p 'pattern-to-upmem{unroll=1 tasklets=8 block=256}' | filecheck %s

// Any length: a kernel whose arguments say how much there is, a loop over rounds, leftovers on the
// host, beside the DPUs.

// CHECK: builtin.module attributes {upmem.machine = "upmem-2560"} {
// CHECK-NEXT: upmem.kernel @add_0 tasklets 8 ([[OWNERS:%[a-z0-9_]+]]: index, [[CHUNK:%[a-z0-9_]+]]: index) {
// CHECK: [[TASKLET:%[a-z0-9_]+]] = upmem.tasklet_id : index
// CHECK: [[A:%[a-z0-9_]+]] = upmem.mram 0 : memref<[[N:[0-9]+]]xi32, #upmem<space mram>>
// CHECK: [[B:%[a-z0-9_]+]] = upmem.mram {{[0-9]+}} : memref<[[N]]xi32, #upmem<space mram>>
// CHECK: [[Y:%[a-z0-9_]+]] = upmem.mram [[AT:[0-9]+]] : memref<[[N]]xi32, #upmem<space mram>>
// CHECK: [[AW:%[a-z0-9_]+]] = upmem.wram : memref<64xi32, #upmem<space wram>>
// CHECK: [[BW:%[a-z0-9_]+]] = upmem.wram : memref<64xi32, #upmem<space wram>>
// CHECK: [[YW:%[a-z0-9_]+]] = upmem.wram : memref<64xi32, #upmem<space wram>>
// CHECK: [[START:%[a-z0-9_]+]] = arith.muli [[TASKLET]], [[CHUNK]] : index
// CHECK-NEXT: [[LOW:%[a-z0-9_]+]] = arith.minui [[START]], [[OWNERS]] : index
// CHECK-NEXT: [[END:%[a-z0-9_]+]] = arith.addi [[LOW]], [[CHUNK]] : index
// CHECK-NEXT: [[HIGH:%[a-z0-9_]+]] = arith.minui [[END]], [[OWNERS]] : index
// CHECK-NEXT: scf.for [[I:%[a-z0-9_]+]] = [[LOW]] to [[HIGH]] step
// CHECK: upmem.mram_read [[A]][[[I]]] to [[AW]][
// CHECK-NEXT: upmem.mram_read [[B]][[[I]]] to [[BW]][
// CHECK-NEXT: scf.for [[J:%[a-z0-9_]+]] = {{.*}} {
// CHECK-NEXT: [[P:%[a-z0-9_]+]] = memref.load [[AW]][[[J]]]
// CHECK-NEXT: [[Q:%[a-z0-9_]+]] = memref.load [[BW]][[[J]]]
// CHECK-NEXT: [[S:%[a-z0-9_]+]] = arith.addi [[P]], [[Q]] : i32
// CHECK-NEXT: memref.store [[S]], [[YW]][[[J]]]
// CHECK-NEXT: }
// CHECK-NEXT: upmem.mram_write [[YW]][{{.*}}] to [[Y]][[[I]]] count
// CHECK-NEXT: }
// CHECK-NEXT: upmem.return

// CHECK: func.func @add(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {
// CHECK: [[TAIL:%[a-z0-9_]+]] = upmem.host_thread -> (tensor<?xi32>) {
// CHECK: tensor.extract_slice %a
// CHECK: tensor.extract_slice %b
// CHECK: [[REST:%[a-z0-9_]+]] = pattern.map
// CHECK: upmem.yield [[REST]] : tensor<?xi32>
// CHECK: [[SET:%[a-z0-9_]+]] = upmem.alloc
// CHECK-NEXT: [[DONE:%[a-z0-9_]+]] = scf.for
// CHECK: upmem.push %a[{{.*}}] to [[SET]] at 0 count
// CHECK-NEXT: upmem.push %b[{{.*}}] to [[SET]] at {{[0-9]+}} count
// CHECK: [[TOKEN:%[a-z0-9_]+]] = upmem.launch @add_0 on [[SET]]({{.+}}, {{.+}}) : (index, index) -> !upmem.token
// CHECK-NEXT: upmem.wait [[TOKEN]] : !upmem.token
// CHECK-NEXT: [[PART:%[a-z0-9_]+]] = upmem.pull [[SET]] at [[AT]] count
// CHECK-NEXT: scf.yield [[PART]] : tensor<?xi32>
// CHECK: upmem.free [[SET]] : !upmem.dpus
// CHECK: [[ALL:%[a-z0-9_]+]] = tensor.insert_slice [[TAIL]] into [[DONE]]
// CHECK-NEXT: func.return [[ALL]] : tensor<?xi32>
func.func @add(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {
  %y = pattern.map(%p in %a : tensor<?xi32>, %q in %b : tensor<?xi32>) -> tensor<?xi32> {
    %s = arith.addi %p, %q : i32
    pattern.yield %s : i32
  }
  func.return %y : tensor<?xi32>
}
