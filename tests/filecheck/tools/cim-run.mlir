// RUN: cim-run %s --target upmem --size 1000 --machine upmem-640 | filecheck %s
// RUN: cim-run %s --target reference --size 4 | filecheck %s --check-prefix REFERENCE
// RUN: cim-run %s --target upmem --size a=0 --report json | filecheck %s --check-prefix JSON

func.func @total(%a: tensor<?xi32>) -> i32 {
  %zero = arith.constant 0 : i32
  %sum = pattern.reduce(%x in %a : tensor<?xi32>) init(%acc = %zero : i32) {
    %s = arith.addi %acc, %x : i32
    pattern.yield %s : i32
  }
  func.return %sum : i32
}
// CHECK:      @total on upmem, upmem-640
// CHECK-NEXT:   input  %a: 1000 int32 [
// CHECK-NEXT:   result 0: int32 {{-?[0-9]+}}
// CHECK:      check: result 0 (i32) equals the reference (bit-exact)

// REFERENCE:      @total on reference
// REFERENCE-NEXT:   input  %a: 4 int32 [
// REFERENCE-NEXT:   result 0: int32
// REFERENCE-NEXT: check: none, this is the reference itself

// JSON:      "target": "upmem",
// JSON-NEXT: "machine": "upmem-2560",
// JSON-NEXT: "entry": "total",
// JSON:      "check": {
// JSON-NEXT:   "ok": true,
// JSON:      "seconds": {{[0-9.e-]+}},
// JSON:      "cycles": {{[0-9.]+}},
