// RUN: cim-opt %s -p canonicalize,cse,dce | filecheck %s
// RUN: cim-opt %s -p 'canonicalize,cse' | cim-opt -p dce | filecheck %s

// CHECK-LABEL: func.func @twice
// CHECK-NEXT:    %[[SUM:.*]] = arith.addi %a, %a : i32
// CHECK-NEXT:    %{{.*}} = arith.muli %[[SUM]], %[[SUM]] : i32
// CHECK-NEXT:    func.return
// CHECK-NOT:     arith
func.func @twice(%a: i32) -> i32 {
  %dead = arith.subi %a, %a : i32
  %b = arith.addi %a, %a : i32
  %c = arith.addi %a, %a : i32
  %d = arith.muli %b, %c : i32
  func.return %d : i32
}
