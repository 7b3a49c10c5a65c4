// RUN: cim-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: Expected 'tasklets'
upmem.kernel @k (%n: index) {
  upmem.return
}

// -----

// CHECK: Expected integer literal
upmem.kernel @k tasklets some (%n: index) {
  upmem.return
}

// -----

// CHECK: expect symbol name
upmem.kernel tasklets 1 () {
  upmem.return
}

// -----

// CHECK: Expected `mram`, or `wram`
upmem.kernel @k tasklets 1 () {
  %w = upmem.wram : memref<8xi32, #upmem<space iram>>
  upmem.return
}

// -----

// CHECK: is used but not defined
func.func @f(%n: index) {
  upmem.wait %t : !upmem.token
  func.return
}
