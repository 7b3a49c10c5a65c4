// RUN: not cim-opt %s --split-input-file 2>&1 | filecheck %s

func.func @good() {
  func.return
}
// CHECK: func.func @good

// -----

func.func @f() -> i32 {
  func.return
}
// CHECK: split_location.mlir:11:3: error: 'func.return'
