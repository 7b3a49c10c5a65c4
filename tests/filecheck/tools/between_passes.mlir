// RUN: cim-opt %s -p canonicalize,cse,dce --print-between-passes | filecheck %s

// CHECK:      IR after canonicalize:
// CHECK-NEXT: builtin.module {
// CHECK:      IR after cse:
// CHECK-NEXT: builtin.module {
// CHECK-NOT:  IR after
// CHECK:      func.func @f
func.func @f() {
  func.return
}
