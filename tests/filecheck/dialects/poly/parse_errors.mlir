// RUN: cim-opt %s --split-input-file --parsing-diagnostics | filecheck %s

// CHECK: not a set of isl: { [i] : 0 <= i
func.func @f() attributes {set = #poly.set<"{ [i] : 0 <= i">} {
  func.return
}

// -----

// CHECK: not a map of isl: { [i] -> 
func.func @f() attributes {map = #poly.map<"{ [i] -> ">} {
  func.return
}
