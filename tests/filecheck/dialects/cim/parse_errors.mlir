// RUN: cim-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: Expected `global`, `input`
cim.program @k(%x: index) {
  cim.copy local[%x] to input[%x] bytes 4
  cim.return
}

// -----

// CHECK: Expected 'rows'
cim.program @k(%x: index) {
  cim.load_weights %x macros 8 bytes 256
  cim.return
}

// -----

// CHECK: Expected 'step'
cim.program @k(%x: index) {
  cim.mvm %x macros 8 rows 32 bits 8
  cim.return
}

// -----

// CHECK: Expected integer literal
cim.program @k(%x: index) {
  cim.vector_clear %x elements many
  cim.return
}
