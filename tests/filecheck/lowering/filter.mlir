// RUN: cim-opt %s -p 'pattern-to-upmem{unroll=1 tasklets=16 dpus=4 block=256 merge=host}' | filecheck %s
// RUN: cim-opt %s -p 'pattern-to-upmem{unroll=1 tasklets=16 dpus=4 block=256}' | filecheck %s --check-prefix=GATHER

// Each tasklet writes what it keeps to the start of its own range, in whole granules, and its
// count. A scatter-gather transfer leaves the gaps out; with merge=host the host pulls all in
// parallel and closes them.

// GATHER: func.func @positive
// GATHER: [[TAIL:%[a-z0-9_]+]], [[MORE:%[a-z0-9_]+]] = upmem.host_thread -> (tensor<?xi32>, index) {
// GATHER: [[C:%[a-z0-9_]+]] = upmem.pull {{.*}} : tensor<64xi64>
// GATHER: [[K:%[a-z0-9_]+]] = upmem.gather %dpus at {{[0-9]+}} segments {{%.+}} counts [[C]] scale 1 into
// GATHER: [[J:%[a-z0-9_]+]] = tensor.insert_slice [[TAIL]] into [[K]]
// GATHER: tensor.extract_slice [[J]][0]
// GATHER: func.func @groups
// GATHER: upmem.gather {{.*}} scale 3 into

// CHECK: upmem.kernel @positive_0 tasklets 16 () {
// CHECK: upmem.mram 0 : memref<{{[0-9]+}}xi32, #upmem<space mram>>
// CHECK: [[KEPT:%[a-z0-9_]+]] = upmem.mram {{[0-9]+}} : memref<{{[0-9]+}}xi32, #upmem<space mram>>
// CHECK: [[COUNTS:%[a-z0-9_]+]] = upmem.mram {{[0-9]+}} : memref<18xi64, #upmem<space mram>>
// CHECK: [[BUFFER:%[a-z0-9_]+]] = upmem.wram : memref<66xi32, #upmem<space wram>>
// CHECK: scf.for {{.*}} -> (index, index) {
// CHECK: upmem.mram_read
// CHECK: scf.for {{.*}} -> (index) {
// CHECK: [[KEEP:%[a-z0-9_]+]] = arith.cmpi sgt
// CHECK-NEXT: scf.if [[KEEP]] -> (index) {
// CHECK-NEXT: memref.store {{.*}}, [[BUFFER]][
// CHECK: upmem.mram_write [[BUFFER]][{{.*}}] to [[KEPT]][
// CHECK: memref.load [[BUFFER]]
// CHECK-NEXT: memref.store {{.*}}, [[BUFFER]]
// CHECK: upmem.mram_write [[BUFFER]][{{.*}}] to [[KEPT]][
// CHECK: arith.index_cast {{.*}} : index to i64
// CHECK: upmem.mram_write {{.*}} to [[COUNTS]][%tasklet] count
// CHECK: func.func @positive
// CHECK: [[TAIL:%[a-z0-9_]+]], [[MORE:%[a-z0-9_]+]] = upmem.host_thread -> (tensor<?xi32>, index) {
// CHECK: [[C:%[a-z0-9_]+]] = upmem.pull {{.*}} : tensor<64xi64>
// CHECK: [[D:%[a-z0-9_]+]] = upmem.pull {{.*}} : tensor<{{[0-9]+}}xi32>
// CHECK: [[K:%[a-z0-9_]+]] = upmem.compact [[D]] segments {{%.+}} counts [[C]] scale 1 into
// CHECK: pattern.reduce({{.*}} in [[C]] : tensor<64xi64>)
// CHECK: [[J:%[a-z0-9_]+]] = tensor.insert_slice [[TAIL]] into [[K]]
// CHECK: tensor.extract_slice [[J]][0]
// CHECK: arith.addi {{%.+}}, [[MORE]] : index
func.func @positive(%a: tensor<1001xi32>) -> (tensor<?xi32>, index) {
  %y, %n = pattern.filter(%x in %a : tensor<1001xi32>) -> (tensor<?xi32>, index) {
    %zero = arith.constant 0 : i32
    %keep = arith.cmpi sgt, %x, %zero : i32
    pattern.yield %keep, %x : i1, i32
  }
  func.return %y, %n : tensor<?xi32>, index
}

// Only the number is wanted: nothing but counts is written and pulled.
// CHECK: func.func @how_many
// CHECK: upmem.pull {{.*}} : tensor<64xi64>
// CHECK-NOT: upmem.pull
// CHECK-NOT: upmem.compact
// CHECK: func.return {{.*}} : index
func.func @how_many(%a: tensor<1000xi32>) -> index {
  %y, %n = pattern.filter(%x in %a : tensor<1000xi32>) -> (tensor<?xi32>, index) {
    %zero = arith.constant 0 : i32
    %keep = arith.cmpi sgt, %x, %zero : i32
    pattern.yield %keep, %x : i1, i32
  }
  func.return %n : index
}

// Groups of 3 are kept whole.
// CHECK: func.func @groups
// CHECK: upmem.compact {{.*}} scale 3 into
func.func @groups(%a: tensor<1200xi32>) -> tensor<?xi32> {
  %y, %n = pattern.group_filter<3>(%s in %a : tensor<1200xi32>) -> (tensor<?xi32>, index) {
    %c0 = arith.constant 0 : index
    %x = tensor.extract %s[%c0] : tensor<3xi32>
    %zero = arith.constant 0 : i32
    %keep = arith.cmpi sgt, %x, %zero : i32
    pattern.yield %keep, %s : i1, tensor<3xi32>
  }
  func.return %y : tensor<?xi32>
}

// CHECK: func.func @windows
// CHECK: upmem.compact {{.*}} scale 1 into
func.func @windows(%a: tensor<1200xi32>) -> tensor<?xi32> {
  %y, %n = pattern.window_filter<3>(%s in %a : tensor<1200xi32>) -> (tensor<?xi32>, index) {
    %c2 = arith.constant 2 : index
    %x = tensor.extract %s[%c2] : tensor<3xi32>
    %zero = arith.constant 0 : i32
    %keep = arith.cmpi sgt, %x, %zero : i32
    pattern.yield %keep, %x : i1, i32
  }
  func.return %y : tensor<?xi32>
}

// CHECK: func.func @window_groups
// CHECK: upmem.compact {{.*}} scale 4 into
func.func @window_groups(%a: tensor<1202xi32>) -> tensor<?xi32> {
  %y, %n = pattern.window_group_filter<3, 4>(%s in %a : tensor<1202xi32>) -> (tensor<?xi32>, index) {
    %c2 = arith.constant 2 : index
    %x = tensor.extract %s[%c2] : tensor<6xi32>
    %zero = arith.constant 0 : i32
    %keep = arith.cmpi sgt, %x, %zero : i32
    pattern.yield %keep, %s : i1, tensor<6xi32>
  }
  func.return %y : tensor<?xi32>
}
