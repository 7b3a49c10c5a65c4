// RUN: cim-opt %s --split-input-file --verify-diagnostics | filecheck %s

// CHECK: runs on at least 1 tasklet, got 0
upmem.kernel @k tasklets 0 () {
  upmem.return
}

// -----

// CHECK: kernel ends in upmem.return
upmem.kernel @k tasklets 1 () {
  "test.termop"() : () -> ()
}

// -----

// CHECK: MRAM offsets are multiples of 8 bytes, got 1
upmem.kernel @k tasklets 1 () {
  %m = upmem.mram 1 : memref<8xi32, #upmem<space mram>>
  upmem.return
}

// -----

// CHECK: expected a 1-D memref in mram, got memref<8xi32, #upmem<space wram>>
upmem.kernel @k tasklets 1 () {
  %m = upmem.mram 0 : memref<8xi32, #upmem<space wram>>
  upmem.return
}

// -----

// CHECK: expected a 1-D memref in mram, got memref<2x4xi32, #upmem<space mram>>
upmem.kernel @k tasklets 1 () {
  %m = upmem.mram 0 : memref<2x4xi32, #upmem<space mram>>
  upmem.return
}

// -----

// CHECK: expected a 1-D memref in wram, got memref<8xi32>
upmem.kernel @k tasklets 1 () {
  %w = upmem.wram : memref<8xi32>
  upmem.return
}

// -----

// CHECK: memrefs have static length, got memref<?xi32, #upmem<space wram>>
upmem.kernel @k tasklets 1 () {
  %w = upmem.wram : memref<?xi32, #upmem<space wram>>
  upmem.return
}

// -----

// CHECK: no memory size for elements of i12
upmem.kernel @k tasklets 1 () {
  %w = upmem.wram : memref<8xi12, #upmem<space wram>>
  upmem.return
}

// -----

// CHECK: WRAM buffers are allocated at the top of a kernel
upmem.kernel @k tasklets 1 (%n: index) {
  upmem.critical %n {
    %w = upmem.wram : memref<8xi32, #upmem<space wram>>
  }
  upmem.return
}

// -----

// CHECK: moves elements of one type, got i32 and i8
upmem.kernel @k tasklets 1 (%n: index) {
  %m = upmem.mram 0 : memref<8xi32, #upmem<space mram>>
  %w = upmem.wram : memref<8xi8, #upmem<space wram>>
  upmem.mram_read %m[%n] to %w[%n] count %n : memref<8xi32, #upmem<space mram>>, memref<8xi8, #upmem<space wram>>
  upmem.return
}

// -----

// CHECK: expected a 1-D memref in mram, got memref<8xi32, #upmem<space wram>>
upmem.kernel @k tasklets 1 (%n: index) {
  %w = upmem.wram : memref<8xi32, #upmem<space wram>>
  upmem.mram_write %w[%n] to %w[%n] count %n : memref<8xi32, #upmem<space wram>>, memref<8xi32, #upmem<space wram>>
  upmem.return
}

// -----

// CHECK: a barrier stands at the top of a kernel, where all tasklets pass
upmem.kernel @k tasklets 1 (%n: index) {
  upmem.critical %n {
    upmem.barrier
  }
  upmem.return
}

// -----

// CHECK: 'upmem.return' expects parent op 'upmem.kernel'
func.func @f() {
  upmem.return
}
