"""Element functions and combinations of patterns on SIMDRAM, against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from simdram_lowering import SMALL, run_checked, write_machine
from upmem_lowering import vector
from xdsl.dialects.func import FuncOp

from cim_opt.dialects.simdram import BbopOp, FillOp, MulScalarOp, Opcode, TransposeOp
from cim_opt.simulators.run import RunResult
from cim_opt.simulators.simdram_report import SimdramReport

V = "tensor<?xi32>"
LENGTHS = (0, 1, 63, 64, 65, 97, 401)
INT = "i32"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_machine(tmp_path_factory.mktemp("machines"), SMALL)


def function(body: str, result: str, arguments: str = "") -> str:
    """@main of a vector %a and more."""
    return f"func.func @main(%a: {V}{arguments}) -> {result} {{\n{body}\n}}\n"


def mapped(body: str, element: str = INT, shared: str = "", arguments: str = "") -> str:
    """A map of %x to %y, which is an `element`."""
    out = f"tensor<?x{element}>"
    clause = f" shared({shared})" if shared else ""
    return function(
        f"%m = pattern.map(%x in %a : {V}){clause} -> {out} {{\n{body}\n"
        f"pattern.yield %y : {element}\n}}\nfunc.return %m : {out}",
        out,
        arguments,
    )


def reduced(body: str, init: str, arguments: str = "", combine: str = "") -> str:
    """A reduce of %x into %acc, giving %y."""
    return function(
        f"%m = pattern.reduce(%x in %a : {V}) init(%acc = {init}) {{\n{body}\n"
        f"pattern.yield %y : i32\n}}{combine}\nfunc.return %m : i32",
        "i32",
        arguments,
    )


BODIES = {
    "branches": mapped(
        """%zero = arith.constant 0 : i32
        %c = arith.cmpi slt, %x, %zero : i32
        %y = scf.if %c -> (i32) {
          %n = arith.subi %zero, %x : i32
          scf.yield %n : i32
        } else {
          %d = arith.addi %x, %x : i32
          scf.yield %d : i32
        }"""
    ),
    "a short loop": mapped(
        """%l = arith.constant 0 : index
        %h = arith.constant 5 : index
        %s = arith.constant 1 : index
        %y = scf.for %i = %l to %h step %s iter_args(%v = %x) -> (i32) {
          %j = arith.index_cast %i : index to i32
          %w = arith.addi %v, %j : i32
          scf.yield %w : i32
        }"""
    ),
    "a long loop": mapped(
        """%l = arith.constant 2 : index
        %h = arith.constant 30 : index
        %s = arith.constant 3 : index
        %y = scf.for %i = %l to %h step %s iter_args(%v = %x) -> (i32) {
          %j = arith.index_cast %i : index to i32
          %d = arith.muli %v, %j : i32
          %w = arith.xori %d, %x : i32
          scf.yield %w : i32
        }"""
    ),
    "a loop that swaps": mapped(
        """%l = arith.constant 0 : index
        %h = arith.constant 21 : index
        %s = arith.constant 1 : index
        %p, %y = scf.for %i = %l to %h step %s iter_args(%v = %x, %w = %x) -> (i32, i32) {
          %j = arith.index_cast %i : index to i32
          %n = arith.addi %v, %j : i32
          scf.yield %w, %n : i32, i32
        }"""
    ),
    "products with numbers": mapped(
        """%c7 = arith.constant 7 : i32
        %m1 = arith.constant -1 : i32
        %big = arith.constant 1431655765 : i32
        %z = arith.constant 0 : i32
        %p = arith.muli %x, %c7 : i32
        %q = arith.muli %m1, %p : i32
        %r = arith.muli %x, %big : i32
        %t = arith.muli %x, %z : i32
        %u = arith.addi %q, %r : i32
        %y = arith.addi %u, %t : i32"""
    ),
    "a product with a scalar": mapped(
        "%y = arith.muli %x, %f : i32", shared="%f = %k : i32", arguments=", %k: i32"
    ),
    "divisions": mapped(
        """%c3 = arith.constant 3 : i32
        %p = arith.divsi %x, %c3 : i32
        %q = arith.remsi %x, %p : i32
        %r = arith.divui %x, %q : i32
        %s = arith.remui %x, %c3 : i32
        %t = arith.xori %q, %r : i32
        %y = arith.addi %s, %t : i32"""
    ),
    "shifts": mapped(
        """%c31 = arith.constant 31 : i32
        %c5 = arith.constant 5 : i32
        %c40 = arith.constant 40 : i32
        %p = arith.shrsi %x, %c31 : i32
        %q = arith.shli %x, %c5 : i32
        %r = arith.shrui %x, %c40 : i32
        %s = arith.andi %x, %c31 : i32
        %t = arith.shrui %q, %s : i32
        %u = arith.shli %p, %x : i32
        %v = arith.addi %r, %t : i32
        %y = arith.addi %u, %v : i32"""
    ),
    "widths": mapped(
        """%p = arith.trunci %x : i32 to i8
        %q = arith.extsi %p : i8 to i64
        %r = arith.extui %p : i8 to i64
        %s = arith.muli %q, %r : i64
        %b = arith.trunci %x : i32 to i1
        %e = arith.extsi %b : i1 to i64
        %y = arith.addi %s, %e : i64""",
        "i64",
    ),
    "bits": mapped(
        """%p = math.ctpop %x : i32
        %q = math.absi %x : i32
        %y = arith.addi %p, %q : i32"""
    ),
    "comparisons to bits": mapped(
        "%y = arith.cmpi ugt, %x, %f : i32", "i1", "%f = %k : i32", ", %k: i32"
    ),
    "the same scalar for all": mapped(
        "%y = arith.addi %f, %f : i32", INT, "%f = %k : i32", ", %k: i32"
    ),
    "a constant result": mapped("%y = arith.constant -3 : i32"),
    "a table at an index of each lane": mapped(
        """%seven = arith.constant 7 : i32
        %j = arith.andi %x, %seven : i32
        %i = arith.index_cast %j : i32 to index
        %y = tensor.extract %f[%i] : tensor<8xi32>""",
        INT,
        "%f = %t : tensor<8xi32>",
        ", %t: tensor<8xi32>",
    ),
    "a long table at an index of each lane": mapped(
        """%mask = arith.constant 15 : i32
        %j = arith.andi %x, %mask : i32
        %i = arith.index_cast %j : i32 to index
        %y = tensor.extract %f[%i] : tensor<16xi32>""",
        INT,
        "%f = %t : tensor<16xi32>",
        ", %t: tensor<16xi32>",
    ),
    # The index has fewer bits than positions in the table: 9 cut to 2 bits is no 1.
    "a long table at an index of few bits": mapped(
        """%mask = arith.constant 3 : i32
        %j = arith.andi %x, %mask : i32
        %i = arith.index_cast %j : i32 to index
        %y = tensor.extract %f[%i] : tensor<16xi32>""",
        INT,
        "%f = %t : tensor<16xi32>",
        ", %t: tensor<16xi32>",
    ),
    "a long table written at an index of few bits": mapped(
        """%mask = arith.constant 3 : i32
        %fifteen = arith.constant 15 : i32
        %j = arith.andi %x, %mask : i32
        %i = arith.index_cast %j : i32 to index
        %u = tensor.insert %x into %f[%i] : tensor<16xi32>
        %k = arith.shrui %x, %mask : i32
        %l = arith.andi %k, %fifteen : i32
        %h = arith.index_cast %l : i32 to index
        %y = tensor.extract %u[%h] : tensor<16xi32>""",
        INT,
        "%f = %t : tensor<16xi32>",
        ", %t: tensor<16xi32>",
    ),
    # The host evaluates both branches, and must not read past the table.
    "a guarded index that is the same for all": mapped(
        """%n = arith.constant 8 : i32
        %c = arith.cmpi ult, %k, %n : i32
        %y = scf.if %c -> (i32) {
          %i = arith.index_cast %k : i32 to index
          %e = tensor.extract %f[%i] : tensor<8xi32>
          scf.yield %e : i32
        } else {
          scf.yield %x : i32
        }""",
        INT,
        "%f = %t : tensor<8xi32>, %k = %g : i32",
        ", %t: tensor<8xi32>, %g: i32",
    ),
    # The element is asked for after the branch.
    "a guarded index in a nested pattern": mapped(
        """%n = arith.constant 8 : i32
        %zero = arith.constant 0 : index
        %c = arith.cmpi ult, %k, %n : i32
        %two = tensor.from_elements %x, %x : tensor<2xi32>
        %l = scf.if %c -> (tensor<2xi32>) {
          %m2 = pattern.map(%z in %two : tensor<2xi32>)
              shared(%g2 = %f : tensor<8xi32>, %k2 = %k : i32) -> tensor<2xi32> {
            %i = arith.index_cast %k2 : i32 to index
            %e = tensor.extract %g2[%i] : tensor<8xi32>
            %s = arith.addi %z, %e : i32
            pattern.yield %s : i32
          }
          scf.yield %m2 : tensor<2xi32>
        } else {
          scf.yield %two : tensor<2xi32>
        }
        %y = tensor.extract %l[%zero] : tensor<2xi32>""",
        INT,
        "%f = %t : tensor<8xi32>, %k = %g : i32",
        ", %t: tensor<8xi32>, %g: i32",
    ),
    "a guarded index that is a number": mapped(
        """%n = arith.constant 8 : i32
        %c = arith.cmpi ult, %k, %n : i32
        %i = arith.constant 9 : index
        %y = scf.if %c -> (i32) {
          %e = tensor.extract %f[%i] : tensor<8xi32>
          scf.yield %e : i32
        } else {
          scf.yield %x : i32
        }""",
        INT,
        "%f = %t : tensor<8xi32>, %k = %g : i32",
        ", %t: tensor<8xi32>, %g: i32",
    ),
}
ARGUMENTS = {
    ", %t: tensor<8xi32>, %g: i32": (vector("i32", 8), np.int32(100)),
    ", %k: i32": (np.int32(-77),),
    ", %t: tensor<8xi32>": (vector("i32", 8),),
    ", %t: tensor<16xi32>": (vector("i32", 16),),
}


def given(text: str, length: int) -> list[object]:
    """Arguments for a program."""
    clause = text.partition(")")[0].partition(V)[2]
    return [vector("i32", length), *ARGUMENTS.get(clause, ())]


@pytest.mark.parametrize("name", BODIES)
def test_body(name: str, small: str) -> None:
    for length in LENGTHS:
        run_checked(BODIES[name], *given(BODIES[name], length), machine=small)
    for library in ("cim-opt", "simdram"):
        run_checked(
            BODIES[name],
            *given(BODIES[name], 67),
            machine=small,
            library=library,
            level="rows",
            narrow=False,
        )


LAST = """%c = arith.constant 0 : i32
%b = arith.cmpi eq, %x, %c : i32
%y = arith.select %b, %acc, %x : i32"""
FOLDS = {
    "sum": reduced("%y = arith.addi %acc, %x : i32", "%k : i32", ", %k: i32"),
    "smallest": reduced("%y = arith.minsi %acc, %x : i32", "%k : i32", ", %k: i32"),
    # Associative, not commutative, without a neutral number that the lowering knows.
    "the last that is not 0": reduced(LAST, "%k : i32", ", %k: i32"),
    "a sum of squares": reduced(
        "%s = arith.muli %x, %x : i32\n%y = arith.addi %acc, %s : i32",
        "%k : i32",
        ", %k: i32",
        " combine(%l, %r) {\n%j = arith.addi %l, %r : i32\npattern.yield %j : i32\n}",
    ),
}


@pytest.mark.parametrize("name", FOLDS)
def test_fold(name: str, small: str) -> None:
    for length in (*LENGTHS, 2 * 64, 3 * 64 - 1):
        run_checked(FOLDS[name], vector("i32", length) % 5, np.int32(9), machine=small)
        scanned = (
            FOLDS[name]
            .replace("pattern.reduce", "pattern.scan")
            .replace("-> i32 {", f"-> {V} {{", 1)
            .replace("func.return %m : i32", f"func.return %m : {V}")
        )
        run_checked(scanned, vector("i32", length) % 5, np.int32(9), machine=small)
        before = scanned.replace("pattern.scan(", "pattern.scan exclusive(")
        run_checked(before, vector("i32", length) % 5, np.int32(9), machine=small)


ENDS = "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index"
CHAINS = {
    "window of a map, summed": function(
        f"""%zero = arith.constant 0 : i32
        %m = pattern.map(%x in %a : {V}) -> {V} {{
          %y = arith.muli %x, %x : i32
          pattern.yield %y : i32
        }}
        %w = pattern.window<3>(%s in %m : {V}) -> {V} {{
          %null = arith.constant 0 : i32
          %r = pattern.reduce(%x in %s : tensor<3xi32>) init(%acc = %null : i32) {{
            %y = arith.addi %acc, %x : i32
            pattern.yield %y : i32
          }}
          pattern.yield %r : i32
        }}
        %t = pattern.reduce(%x in %w : {V}) init(%acc = %zero : i32) {{
          %y = arith.maxsi %acc, %x : i32
          pattern.yield %y : i32
        }}
        func.return %w, %t : {V}, i32""",
        f"({V}, i32)",
    ),
    "windows of windows": function(
        f"""%w = pattern.window<2>(%s in %a : {V}) -> {V} {{
          {ENDS}
          %p = tensor.extract %s[%c0] : tensor<2xi32>
          %q = tensor.extract %s[%c1] : tensor<2xi32>
          %y = arith.subi %q, %p : i32
          pattern.yield %y : i32
        }}
        %v = pattern.window<2>(%s in %w : {V}) -> {V} {{
          {ENDS}
          %p = tensor.extract %s[%c0] : tensor<2xi32>
          %q = tensor.extract %s[%c1] : tensor<2xi32>
          %y = arith.subi %q, %p : i32
          pattern.yield %y : i32
        }}
        func.return %v : {V}""",
        V,
    ),
    "a filter of a map, and its length": function(
        f"""%m = pattern.map(%x in %a : {V}) -> {V} {{
          %y = arith.addi %x, %x : i32
          pattern.yield %y : i32
        }}
        %f, %n = pattern.filter(%x in %m : {V}) -> ({V}, index) {{
          %zero = arith.constant 0 : i32
          %c = arith.cmpi sgt, %x, %zero : i32
          pattern.yield %c, %x : i1, i32
        }}
        %g = pattern.map(%x in %f : {V}) -> {V} {{
          %y = arith.xori %x, %x : i32
          %z = arith.subi %y, %x : i32
          pattern.yield %z : i32
        }}
        func.return %f, %g, %n : {V}, {V}, index""",
        f"({V}, {V}, index)",
    ),
    "a scan of a scan": function(
        f"""%zero = arith.constant 0 : i32
        %s = pattern.scan(%x in %a : {V}) init(%acc = %zero : i32) {{
          %y = arith.addi %acc, %x : i32
          pattern.yield %y : i32
        }}
        %t = pattern.scan(%x in %s : {V}) init(%acc = %zero : i32) {{
          %y = arith.maxsi %acc, %x : i32
          pattern.yield %y : i32
        }}
        func.return %t : {V}""",
        V,
    ),
    "a mean that later patterns use": function(
        f"""%zero = arith.constant 0 : i32
        %c0 = arith.constant 0 : index
        %s = pattern.reduce(%x in %a : {V}) init(%acc = %zero : i32) {{
          %y = arith.addi %acc, %x : i32
          pattern.yield %y : i32
        }}
        %n = tensor.dim %a, %c0 : {V}
        %j = arith.index_cast %n : index to i32
        %mean = arith.divsi %s, %j : i32
        %m = pattern.map(%x in %a : {V}) shared(%f = %mean : i32) -> {V} {{
          %y = arith.subi %x, %f : i32
          pattern.yield %y : i32
        }}
        func.return %m : {V}""",
        V,
    ),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chain(name: str, small: str) -> None:
    for length in LENGTHS:
        run_checked(CHAINS[name], vector("i32", length), machine=small)
    run_checked(CHAINS[name], vector("i32", 131), machine=small, level="rows", narrow=False)


def histogram(bins: int, weight: str = "%one") -> str:
    """Bins that count, or that sum the elements."""
    table = f"tensor<{bins}xi32>"
    return function(
        f"""%zeros = arith.constant dense<0> : {table}
        %h = pattern.reduce(%x in %a : {V}) init(%acc = %zeros : {table}) {{
          %one = arith.constant 1 : i32
          %bins = arith.constant {bins} : i32
          %j = arith.remui %x, %bins : i32
          %i = arith.index_cast %j : i32 to index
          %o = tensor.extract %acc[%i] : {table}
          %n = arith.addi %o, {weight} : i32
          %u = tensor.insert %n into %acc[%i] : {table}
          pattern.yield %u : {table}
        }} combine(%l, %r) {{
          %s = arith.addi %l, %r : i32
          pattern.yield %s : i32
        }}
        func.return %h : {table}""",
        table,
    )


@pytest.mark.parametrize("weight", ["%one", "%x"])
@pytest.mark.parametrize("bins", [1, 7, 16, 17, 40])
def test_histogram(bins: int, weight: str, small: str) -> None:
    for length in (0, 1, 64, 65, 401):
        run_checked(histogram(bins, weight), vector("i32", length), machine=small)
    run_checked(histogram(bins, weight), vector("i32", 70), machine=small, level="rows")


def operations(result: RunResult, kind: type) -> list[object]:
    assert result.lowered is not None
    return [op for op in result.lowered.walk() if isinstance(op, kind)]


@pytest.mark.parametrize(("length", "static", "transposed"), [(300, True, 6), (300, False, 11)])
def test_a_scan_brings_its_first_elements_in_once(
    length: int, static: bool, transposed: int, small: str
) -> None:
    """Five a lane and the offsets; of an unknown length four come twice, and the rest is asked."""
    vec = f"tensor<{length if static else '?'}xi32>"
    text = f"""func.func @main(%a: {vec}, %init: i32) -> {vec} {{
      %r = pattern.scan(%x in %a : {vec}) init(%acc = %init : i32) {{
        %s = arith.muli %acc, %x : i32
        pattern.yield %s : i32
      }}
      func.return %r : {vec}
    }}"""
    run = run_checked(text, vector("i32", length), np.int32(3), machine=small, level="rows")
    assert isinstance(run.report, SimdramReport)
    assert run.report.transposed.count == transposed


def test_numbers_are_computed_when_lowering(small: str) -> None:
    """Shifts by what comes out are shifts by a constant, and the host has nothing to do."""
    text = mapped(
        """%one = arith.constant 1 : i32
        %two = arith.addi %one, %one : i32
        %m = arith.constant -8 : i32
        %half = arith.divsi %m, %two : i32
        %low = arith.trunci %half : i32 to i3
        %four = arith.extui %low : i3 to i32
        %less = arith.cmpi slt, %half, %four : i32
        %by = arith.select %less, %four, %m : i32
        %y = arith.shrsi %x, %by : i32"""
    )
    run = run_checked(text, vector("i32", 99), machine=small, narrow=False)
    assert run.lowered is not None
    amounts = [op.amount for op in run.lowered.walk() if isinstance(op, BbopOp)]
    assert [amount.value.data for amount in amounts if amount is not None] == [4]
    names = {op.name for op in run.lowered.walk()}
    assert not names & {"arith.divsi", "arith.trunci", "arith.extui", "arith.cmpi", "arith.select"}


def test_a_scalar_that_the_host_knows_takes_no_transposition(small: str) -> None:
    text = BODIES["a product with a scalar"]
    result = run_checked(text, *given(text, 40), machine=small)
    assert len(operations(result, MulScalarOp)) == 1
    assert len(operations(result, TransposeOp)) == 1
    assert not operations(result, FillOp)


def test_a_map_before_a_fold_stays_in_dram(small: str) -> None:
    result = run_checked(CHAINS["a scan of a scan"], vector("i32", 100), machine=small)
    assert len(operations(result, FuncOp)) == 1
    dot = FOLDS["a sum of squares"]
    result = run_checked(dot, vector("i32", 100), np.int32(0), machine=small)
    opcodes = [op.opcode.data for op in operations(result, BbopOp) if isinstance(op, BbopOp)]
    assert opcodes.count(Opcode.MUL) >= 2, "first elements, and those that follow"
