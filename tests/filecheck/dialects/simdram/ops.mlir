// RUN: cim-opt %s | cim-opt | filecheck %s
// RUN: cim-opt %s --print-op-generic | cim-opt | filecheck %s
// RUN: cim-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: func.func @values(
func.func @values(%a: tensor<?xi32>, %bits: tensor<?xi1>, %n: index, %k: i32, %dest: tensor<?xi32>) {
  // CHECK-NEXT: %x = simdram.transpose %a[%n] stride %n count %n : tensor<?xi32> -> !simdram.vec<32>
  // GENERIC: %x = "simdram.transpose"(%a, %n, %n, %n) : (tensor<?xi32>, index, index, index) -> !simdram.vec<32>
  %x = simdram.transpose %a[%n] stride %n count %n : tensor<?xi32> -> !simdram.vec<32>
  // CHECK-NEXT: %low = simdram.transpose %a[%n] stride %n count %n {note = 1 : i32} : tensor<?xi32> -> !simdram.vec<5>
  // GENERIC-NEXT: %low = "simdram.transpose"(%a, %n, %n, %n) {note = 1 : i32} :
  %low = simdram.transpose %a[%n] stride %n count %n {note = 1 : i32} : tensor<?xi32> -> !simdram.vec<5>
  // CHECK-NEXT: %c = simdram.transpose %bits[%n] stride %n count %n : tensor<?xi1> -> !simdram.vec<1>
  // GENERIC-NEXT: %c = "simdram.transpose"(%bits, %n, %n, %n) :
  %c = simdram.transpose %bits[%n] stride %n count %n : tensor<?xi1> -> !simdram.vec<1>
  // CHECK-NEXT: %y = simdram.fill %k count %n : i32 -> !simdram.vec<32>
  // GENERIC-NEXT: %y = "simdram.fill"(%k, %n) : (i32, index) -> !simdram.vec<32>
  %y = simdram.fill %k count %n : i32 -> !simdram.vec<32>
  // CHECK-NEXT: %z = simdram.fill %n count %n : index -> !simdram.vec<64>
  // GENERIC-NEXT: %z = "simdram.fill"(%n, %n) : (index, index) -> !simdram.vec<64>
  %z = simdram.fill %n count %n : index -> !simdram.vec<64>
  // CHECK-NEXT: %s = simdram.bbop add(%x, %y) : (!simdram.vec<32>, !simdram.vec<32>) -> !simdram.vec<32>
  // GENERIC-NEXT: %s = "simdram.bbop"(%x, %y) <{opcode = #simdram<opcode add>}> :
  %s = simdram.bbop add(%x, %y) : (!simdram.vec<32>, !simdram.vec<32>) -> !simdram.vec<32>
  // CHECK-NEXT: %q = simdram.bbop gts(%s, %y) {note} : (!simdram.vec<32>, !simdram.vec<32>) -> !simdram.vec<1>
  // GENERIC-NEXT: %q = "simdram.bbop"(%s, %y) <{opcode = #simdram<opcode gts>}> {note} :
  %q = simdram.bbop gts(%s, %y) {note} : (!simdram.vec<32>, !simdram.vec<32>) -> !simdram.vec<1>
  // CHECK-NEXT: %m = simdram.bbop select(%q, %s, %y) : (!simdram.vec<1>, !simdram.vec<32>, !simdram.vec<32>) -> !simdram.vec<32>
  // GENERIC-NEXT: %m = "simdram.bbop"(%q, %s, %y) <{opcode = #simdram<opcode select>}> :
  %m = simdram.bbop select(%q, %s, %y) : (!simdram.vec<1>, !simdram.vec<32>, !simdram.vec<32>) -> !simdram.vec<32>
  // CHECK-NEXT: %h = simdram.bbop shrs_const(%m) amount 4 : (!simdram.vec<32>) -> !simdram.vec<32>
  // GENERIC-NEXT: %h = "simdram.bbop"(%m) <{opcode = #simdram<opcode shrs_const>, amount = 4 : i64}> :
  %h = simdram.bbop shrs_const(%m) amount 4 : (!simdram.vec<32>) -> !simdram.vec<32>
  // CHECK-NEXT: %t = simdram.bbop trunc(%h) : (!simdram.vec<32>) -> !simdram.vec<7>
  // GENERIC-NEXT: %t = "simdram.bbop"(%h) <{opcode = #simdram<opcode trunc>}> :
  %t = simdram.bbop trunc(%h) : (!simdram.vec<32>) -> !simdram.vec<7>
  // CHECK-NEXT: %e = simdram.bbop sext(%t) : (!simdram.vec<7>) -> !simdram.vec<32>
  // GENERIC-NEXT: %e = "simdram.bbop"(%t) <{opcode = #simdram<opcode sext>}> :
  %e = simdram.bbop sext(%t) : (!simdram.vec<7>) -> !simdram.vec<32>
  // CHECK-NEXT: %p = simdram.mul_scalar %e, %k : !simdram.vec<32>, i32 -> !simdram.vec<32>
  // GENERIC-NEXT: %p = "simdram.mul_scalar"(%e, %k) : (!simdram.vec<32>, i32) -> !simdram.vec<32>
  %p = simdram.mul_scalar %e, %k : !simdram.vec<32>, i32 -> !simdram.vec<32>
  // CHECK-NEXT: %r = simdram.read %p into %dest[%n] stride %n : !simdram.vec<32>, tensor<?xi32>
  // GENERIC-NEXT: %r = "simdram.read"(%p, %dest, %n, %n) :
  %r = simdram.read %p into %dest[%n] stride %n : !simdram.vec<32>, tensor<?xi32>
  // CHECK-NEXT: %kept = simdram.compact %r by %bits scale 2 : tensor<?xi32>, tensor<?xi1> -> tensor<?xi32>
  // GENERIC-NEXT: %kept = "simdram.compact"(%r, %bits) <{scale = 2 : i64}> :
  %kept = simdram.compact %r by %bits scale 2 : tensor<?xi32>, tensor<?xi1> -> tensor<?xi32>
  func.return
}

// CHECK-LABEL: func.func @rows(
func.func @rows(%a: tensor<8xi8>, %n: index, %k: i8) {
  // CHECK-NEXT: %x = simdram.transpose %a[%n] stride %n count %n row 0 : tensor<8xi8> -> !simdram.vec<8>
  // GENERIC: %x = "simdram.transpose"(%a, %n, %n, %n) <{row = 0 : i64}> :
  %x = simdram.transpose %a[%n] stride %n count %n row 0 : tensor<8xi8> -> !simdram.vec<8>
  // CHECK-NEXT: %y = simdram.fill %k count %n row 8 : i8 -> !simdram.vec<8>
  // GENERIC-NEXT: %y = "simdram.fill"(%k, %n) <{row = 8 : i64}> :
  %y = simdram.fill %k count %n row 8 : i8 -> !simdram.vec<8>
  // CHECK-NEXT: %s = simdram.bbop mul(%x, %y) row 16 scratch 24 : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
  // GENERIC-NEXT: %s = "simdram.bbop"(%x, %y) <{opcode = #simdram<opcode mul>, row = 16 : i64, scratch = 24 : i64}> :
  %s = simdram.bbop mul(%x, %y) row 16 scratch 24 : (!simdram.vec<8>, !simdram.vec<8>) -> !simdram.vec<8>
  // CHECK-NEXT: %h = simdram.bbop shl_const(%s) amount 0 row 24 : (!simdram.vec<8>) -> !simdram.vec<8>
  // GENERIC-NEXT: %h = "simdram.bbop"(%s) <{opcode = #simdram<opcode shl_const>, amount = 0 : i64, row = 24 : i64}> :
  %h = simdram.bbop shl_const(%s) amount 0 row 24 : (!simdram.vec<8>) -> !simdram.vec<8>
  // CHECK-NEXT: %p = simdram.mul_scalar %h, %k row 0 scratch 32 {note} : !simdram.vec<8>, i8 -> !simdram.vec<8>
  // GENERIC-NEXT: %p = "simdram.mul_scalar"(%h, %k) <{row = 0 : i64, scratch = 32 : i64}> {note} :
  %p = simdram.mul_scalar %h, %k row 0 scratch 32 {note} : !simdram.vec<8>, i8 -> !simdram.vec<8>
  // CHECK-NEXT: %c = simdram.fill %k count %n constant {note} : i8 -> !simdram.vec<8>
  // GENERIC-NEXT: %c = "simdram.fill"(%k, %n) <{constant}> {note} :
  %c = simdram.fill %k count %n constant {note} : i8 -> !simdram.vec<8>
  func.return
}

// CHECK-LABEL: func.func @complemented(
func.func @complemented(%a: tensor<?xi32>, %n: index, %k: i32) {
  // CHECK-NEXT: %x = simdram.transpose %a[%n] stride %n count %n : tensor<?xi32> -> !simdram.vec<32, complemented>
  // GENERIC: %x = "simdram.transpose"(%a, %n, %n, %n) : (tensor<?xi32>, index, index, index) -> !simdram.vec<32, complemented>
  %x = simdram.transpose %a[%n] stride %n count %n : tensor<?xi32> -> !simdram.vec<32, complemented>
  // CHECK-NEXT: %y = simdram.fill %k count %n : i32 -> !simdram.vec<32>
  %y = simdram.fill %k count %n : i32 -> !simdram.vec<32>
  // CHECK-NEXT: %s = simdram.bbop add(%x, %y) : (!simdram.vec<32, complemented>, !simdram.vec<32>) -> !simdram.vec<32>
  // GENERIC: %s = "simdram.bbop"(%x, %y) <{opcode = #simdram<opcode add>}> : (!simdram.vec<32, complemented>, !simdram.vec<32>) -> !simdram.vec<32>
  %s = simdram.bbop add(%x, %y) : (!simdram.vec<32, complemented>, !simdram.vec<32>) -> !simdram.vec<32>
  // CHECK-NEXT: %o = simdram.bbop mul(%s, %y) : (!simdram.vec<32>, !simdram.vec<32>) -> !simdram.vec<32, complemented>
  %o = simdram.bbop mul(%s, %y) : (!simdram.vec<32>, !simdram.vec<32>) -> !simdram.vec<32, complemented>
  // CHECK-NEXT: %r = simdram.read %o into %a[%n] stride %n : !simdram.vec<32, complemented>, tensor<?xi32>
  %r = simdram.read %o into %a[%n] stride %n : !simdram.vec<32, complemented>, tensor<?xi32>
  func.return
}
