// RUN: not cim-run %s --target upmem 2>&1 | filecheck %s --check-prefix LENGTH
// RUN: not cim-run %s --target auto --size 4 2>&1 | filecheck %s --check-prefix LATER
// RUN: not cim-run %s --target upmem --size b=4 2>&1 | filecheck %s --check-prefix NAME
// RUN: not cim-run %s --target upmem --size many 2>&1 | filecheck %s --check-prefix USAGE

func.func @same(%a: tensor<?xi32>) -> tensor<?xi32> {
  func.return %a : tensor<?xi32>
}
// LENGTH: cim-run-errors.mlir:6:1: error: %a is tensor<?xi32> and has no length; every `?` needs one; add --size K, --size a=K or --input a=FILE.npy
// LATER:  cim-run: error: target auto is not available yet; the targets are reference, upmem, simdram, cim; choose one of these
// NAME:   cim-run: error: --size: no argument %b; the entry takes %a; name one of these
// USAGE:  cim-run: error: argument --size: takes K or ARG=K, got
