"""Programs of macros, run and compared with NumPy; and what they are reported to take."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from cim_programs import RNG, launched, machine, module_of, numbers, program, run
from hypothesis import given, settings
from hypothesis import strategies as st

from cim_opt.errors import UserError
from cim_opt.hardware.cim import CimMachine
from cim_opt.simulators.cim import CimSimulator, count
from cim_opt.simulators.cim_arithmetic import packed_bytes, product_dtype, unpacked

MVM_LOOP = """
cim.load_weights %w macros {macros} rows {rows}
%n = arith.constant {steps} : index
%in = arith.constant {inputs} : index
%out = arith.constant {sums} : index
%e:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x, %q = %y) -> (index, index) {{
  cim.copy global[%p] to input_register[%c0] bytes {inputs}
  cim.mvm %c0 step {step} macros {macros} rows {rows} bits {bits}
  cim.copy output_register[%c0] to output[%c0] bytes {sums}
  cim.copy output[%c0] to global[%q] bytes {sums}
  %p1 = arith.addi %p, %in : index
  %q1 = arith.addi %q, %out : index
  scf.yield %p1, %q1 : index, index
}}
"""


def mvms(steps: int, macros: int, rows: int, bits: int = 8, on: CimMachine | None = None) -> str:
    """A launch of `steps` macro steps, each on its own inputs, with the same weights."""
    columns = (on or machine()).columns_of(bits)
    each, wide = rows * max(1, bits // 8), f"i{bits}"
    sizes = {"step": each, "inputs": each * macros, "sums": 4 * columns * macros}
    body = MVM_LOOP.format(steps=steps, macros=macros, rows=rows, bits=bits, **sizes)
    return launched(
        body,
        f"tensor<{steps * macros * rows}x{wide}>",
        f"tensor<{rows * macros * columns}x{wide}>",
        f"tensor<{steps * macros * columns}xi32>",
    )


def products(x: Any, w: Any, macros: int, rows: int) -> Any:
    """Sums over rows, wrapped to 32 bits: x (steps, macros, rows), w (rows, macros, columns)."""
    x = x.reshape(-1, macros, rows).astype(np.int64)
    w = w.reshape(rows, macros, -1).astype(np.int64)
    return np.einsum("smr,rmc->smc", x, w).astype(np.int32).reshape(-1)


def some(count: int, bits: int) -> Any:
    """Random numbers of so many bits, the extremes among them."""
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    values = RNG.integers(low, high, count, endpoint=True)
    values[:2] = low, high
    return values.astype(np.int16 if bits == 16 else np.int8)


@pytest.mark.parametrize("bits", [4, 8, 16])
@pytest.mark.parametrize(("macros", "rows"), [(8, 32), (8, 27), (5, 32), (1, 9)])
def test_macro_steps(bits: int, macros: int, rows: int) -> None:
    columns = machine().columns_of(bits)
    x, w = some(7 * macros * rows, bits), some(rows * macros * columns, bits)
    (got,), report = run(mvms(7, macros, rows, bits), [x, w])
    assert np.array_equal(got, products(x, w, macros, rows))
    assert (report.mvms, report.macro_steps) == (7, 7 * macros)


@pytest.mark.parametrize("name", ["cim-32x64-1", "cim-64x64-1", "cim-64x64-8"])
def test_other_machines(name: str) -> None:
    on = machine(name)
    x, w = some(3 * on.macros * on.rows, 8), some(on.rows * on.macros * 8, 8)
    (got,), _ = run(mvms(3, on.macros, on.rows, on=on), [x, w], on)
    assert np.array_equal(got, products(x, w, on.macros, on.rows))


def test_sums_of_the_extremes_wrap_around() -> None:
    x, w = np.full(32, -32768, np.int16), np.full(128, -32768, np.int16)
    (got,), _ = run(mvms(1, 1, 32, 16), [x, w[:128]])
    assert got.tolist() == [int(np.int64(32 << 30).astype(np.int32))] * 4
    x[0] = 32767
    (got,), _ = run(mvms(1, 1, 32, 16), [x, w[:128]])
    assert got.tolist() == [int(np.int64((31 << 30) - 32767 * 32768).astype(np.int32))] * 4


@pytest.mark.parametrize("rows", [1, 64, 1023, 1024, 1 << 20, 1 << 30])
@pytest.mark.parametrize("bits", [4, 8, 16])
def test_products_are_computed_exactly(rows: int, bits: int) -> None:
    """Every partial sum is an integer that the type holds."""
    dtype, largest = product_dtype(rows, bits), rows * (1 << bits - 1) ** 2
    if dtype.kind == "f":
        assert largest <= 2 ** (np.finfo(dtype).nmant + 1)
    assert int(dtype.type(largest - 1)) == largest - 1


@given(st.lists(st.integers(-8, 7)))
def test_halves_of_bytes(values: list[int]) -> None:
    data = packed_bytes(np.array(values, np.int8), True)
    assert len(data) == (len(values) + 1) // 2
    back = unpacked(np.frombuffer(data, np.uint8), 4)[: len(values)]
    assert back.tolist() == values


ACCUMULATE = """
cim.load_weights %w macros 2 rows 4
%eight = arith.constant 8 : index
cim.copy global[%x] to input_register[%c0] bytes 16
cim.mvm %c0 step 4 macros 2 rows 4 bits 8
cim.mvm %eight step 4 macros 2 rows 4 bits 8 accumulate
cim.copy output_register[%c0] to global[%y] bytes 64
"""
ACCUMULATED = launched(ACCUMULATE, "tensor<16xi8>", "tensor<64xi8>", "tensor<16xi32>")


def test_accumulating() -> None:
    x, w = numbers(16), numbers(64)
    (got,), _ = run(ACCUMULATED, [x, w])
    first, second = (products(x[n : n + 8], w, 2, 4) for n in (0, 8))
    assert np.array_equal(got, first + second)


def test_all_macros_may_read_the_same_input() -> None:
    text = ACCUMULATED.replace("step 4 macros 2", "step 0 macros 2")
    x, w = numbers(16), numbers(64)
    (got,), _ = run(text, [x, w])
    total = (x[:4].astype(np.int32) + x[8:12]).astype(np.int64)
    expected = np.einsum("r,rmc->mc", total, w.reshape(4, 2, 8).astype(np.int64))
    assert got.tolist() == expected.reshape(-1).tolist()


PIPELINED = """
%n = arith.constant 9 : index
%s = arith.constant 64 : index
%x1 = arith.addi %x, %c32 : index
cim.load_weights %w macros 1 rows 32
cim.copy global[%x] to input_register[%c0] bytes 32
%e:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x1, %q = %y) -> (index, index) {
  cim.mvm %c0 step 0 macros 1 rows 32 bits 8
  cim.copy global[%p] to input_register[%c0] bytes 32
  cim.copy output_register[%c0] to global[%q] bytes 32
  %p1 = arith.addi %p, %c32 : index
  %q1 = arith.addi %q, %c32 : index
  scf.yield %p1, %q1 : index, index
}
cim.mvm %c0 step 0 macros 1 rows 32 bits 8
cim.copy output_register[%c0] to global[%e#1] bytes 32
"""


def test_a_pipelined_loop() -> None:
    """Inputs of the next step arrive while the sums of this one leave."""
    x, w = numbers(320), numbers(256)
    text = launched(PIPELINED, "tensor<320xi8>", "tensor<256xi8>", "tensor<80xi32>")
    (got,), _ = run(text, [x, w])
    assert np.array_equal(got, products(x, w, 1, 32))


def test_prefetching_beyond_the_input_is_no_use_of_it() -> None:
    """The last round loads what nobody multiplies."""
    text = launched(PIPELINED, "tensor<288xi8>", "tensor<256xi8>", "tensor<80xi32>")
    text = text.replace(
        "cim.mvm %c0 step 0 macros 1 rows 32 bits 8\ncim.copy output", "cim.copy o", 1
    )
    text = text.replace("cim.copy o_register[%c0] to global[%e#1] bytes 32\n", "")
    text = text.replace("tensor<80xi32>", "tensor<72xi32>")
    x, w = numbers(288), numbers(256)
    (got,), _ = run(text, [x, w])
    assert np.array_equal(got, products(x, w, 1, 32))


TREE = """
%a1 = arith.constant 128 : index
%a2 = arith.constant 256 : index
%a3 = arith.constant 384 : index
cim.copy global[%x] to output[%c0] bytes 512
cim.vector_add %c0, %c0, %a1 elements 32
cim.vector_add %a2, %a2, %a3 elements 32
cim.vector_add %a3, %c0, %a2 elements 32
cim.vector_clear %a1 elements 16
cim.copy output[%a3] to global[%y] bytes 128
cim.copy output[%a1] to global[%y] plus 128 bytes 128
"""


def test_a_tree_of_sums() -> None:
    x = numbers(128, "int32")
    text = launched(TREE, "tensor<128xi32>", "tensor<1xi8>", "tensor<64xi32>")
    (got,), report = run(text, [x, numbers(1)])
    parts = x.reshape(4, 32)
    assert np.array_equal(got[:32], parts.sum(axis=0, dtype=np.int32))
    assert not got[32:48].any()
    assert np.array_equal(got[48:], parts[1, 16:])
    assert report.busy_cycles["vector"] > 0


def test_additions_read_before_they_write() -> None:
    """Source and target overlap; so do those of a copy."""
    body = """
%four = arith.constant 4 : index
cim.copy global[%x] to output[%c0] bytes 64
cim.vector_add %four, %c0, %c0 elements 8
cim.copy output[%c0] to output[%c0] plus 12 bytes 52
cim.copy output[%c0] to global[%y] bytes 64
"""
    x = numbers(16, "int32")
    text = launched(body, "tensor<16xi32>", "tensor<1xi8>", "tensor<16xi32>")
    (got,), _ = run(text, [x, numbers(1)])
    added = np.concatenate([x[:1], x[:8] + x[:8], x[9:]])
    assert np.array_equal(got, np.concatenate([added[:3], added[:13]]))


def test_sums_return_to_the_macros() -> None:
    body = ACCUMULATE.replace(
        "cim.mvm %eight", "cim.copy output[%c0] to output_register[%c0] bytes 64\ncim.mvm %eight"
    ).replace("cim.load", "cim.copy global[%x] to output[%c0] bytes 64\ncim.load", 1)
    body = body.replace("cim.copy global[%x] to input", "cim.copy global[%w] to input")
    text = launched(body, "tensor<16xi32>", "tensor<64xi8>", "tensor<16xi32>")
    x, w = numbers(16, "int32"), numbers(64)
    (got,), _ = run(text, [x, w])
    assert np.array_equal(got, x + products(w[8:16], w, 2, 4))


# -- unknown bytes -------------------------------------------------------------------------------

PARTIAL = """
cim.load_weights %w macros 1 rows 32
cim.copy global[%x] to input_register[%c0] bytes 27
cim.mvm %c0 step 0 macros 1 rows 32 bits 8
cim.copy output_register[%c0] to global[%y] bytes 32
"""


def test_rows_without_weights_take_anything() -> None:
    x, w = numbers(27), numbers(256)
    w[27 * 8 :] = 0
    text = launched(PARTIAL, "tensor<27xi8>", "tensor<256xi8>", "tensor<8xi32>")
    (got,), _ = run(text, [x, w])
    assert np.array_equal(got, products(x, w[: 27 * 8], 1, 27))


UNPACKED = """
func.func @main(%a: tensor<27xi8>, %b: tensor<256xi8>, %z: tensor<8xi32>) -> tensor<8xi32> {{
  %p = cim.launch @k(%a, %b) : (tensor<27xi8>, tensor<256xi8>) -> tensor<{size}xi32>
  %r = cim.unpack %p into %z shape [{size}] map affine_map<(s) -> (s)> bounds [{bound}]
    index affine_map<(n) -> (n - {start})> tables []
    : tensor<{size}xi32>, tensor<8xi32> -> tensor<8xi32>
  return %r : tensor<8xi32>
}}
"""


def test_results_that_are_left_out_need_not_be_known() -> None:
    """Sixteen elements are stored, of which the macro made eight; the others are left out."""
    text = program(PARTIAL.replace("bytes 32", "bytes 64")) + UNPACKED.format(
        size=16, bound=8, start=0
    )
    x, w, z = numbers(27), numbers(256), numbers(8, "int32")
    w[27 * 8 :] = 0
    (got,), _ = run(text, [x, w, z])
    assert np.array_equal(got, z + products(x, w[: 27 * 8], 1, 27))


def test_unknown_bytes_stay_unknown_through_sums() -> None:
    body = PARTIAL.replace(
        "to global[%y] bytes 32",
        "to output[%c0] bytes 64\ncim.vector_add %c0, %c0, %c0 elements 16\n"
        "cim.copy output[%c0] to global[%y] bytes 64",
    )
    x, w, z = numbers(27), numbers(256), np.zeros(8, np.int32)
    w[27 * 8 :] = 0
    good = program(body) + UNPACKED.format(size=16, bound=8, start=0)
    (got,), _ = run(good, [x, w, z])
    assert np.array_equal(got, 2 * products(x, w[: 27 * 8], 1, 27))
    bad = program(body) + UNPACKED.format(size=16, bound=16, start=8)
    with pytest.raises(UserError, match="packed element 8 holds nothing that was computed"):
        run(bad, [x, w, z])


# -- whole functions -----------------------------------------------------------------------------

CONVOLUTION = """
func.func @main(%a: tensor<62xi8>, %b: tensor<3xi8>, %z: tensor<62xi32>) -> tensor<62xi32> {
  %x = cim.pack %a shape [8, 16] map affine_map<(s, r) -> (s * 8 + r)> bounds [64]
    index affine_map<(n) -> (n - 1)> tables [] : tensor<62xi8> -> tensor<128xi8>
  %w = cim.pack %b shape [16, 8] map affine_map<(r, c) -> (r, c, 0)> bounds [3]
    index affine_map<(k) -> (k)>
    tables [dense<[[0], [1], [2], [3], [4], [5], [6], [7], [8], [9], [10], [11], [12], [13], [14],
      [15]]> : tensor<16x1xi32>, dense<[[0], [-1], [-2], [-3], [-4], [-5], [-6], [-7]]>
      : tensor<8x1xi32>]
    : tensor<3xi8> -> tensor<128xi8>
  %y = cim.launch @k(%x, %w) {cim.macs = 186 : i64}
    : (tensor<128xi8>, tensor<128xi8>) -> tensor<64xi32>
  %r = cim.unpack %y into %z shape [8, 8] map affine_map<(s, c) -> (s * 8 + c)> bounds [62]
    index affine_map<(n) -> (n)> tables [] : tensor<64xi32>, tensor<62xi32> -> tensor<62xi32>
  return %r : tensor<62xi32>
}
"""
CONVOLUTION_PROGRAM = program(
    MVM_LOOP.format(macros=1, rows=16, steps=8, inputs=16, sums=32, step=0, bits=8)
)


def test_a_padded_convolution() -> None:
    a, b, z = numbers(62), numbers(3), numbers(62, "int32")
    (got,), report = run(CONVOLUTION_PROGRAM + CONVOLUTION, [a, b, z])
    padded = np.pad(a.astype(np.int32), 1)
    expected = sum(int(b[k]) * padded[k : k + 62] for k in range(3))
    assert np.array_equal(got, z + expected)
    assert report.macs == 186
    assert report.utilisation == 186 / (8 * 256)
    assert (report.packed_bytes, report.unpacked_bytes) == (256, 256)
    # Tensors of 62, 3 and 256 + 248 bytes read, 128 + 128 + 248 written, 64 in a cycle.
    assert report.layout_cycles == (1 + 2) + (1 + 2) + (8 + 4)


def test_several_launches_add_up() -> None:
    text = (
        CONVOLUTION_PROGRAM
        + CONVOLUTION.replace(
            "return %r",
            "%more = func.call @again(%a, %b, %r) : (tensor<62xi8>, tensor<3xi8>, tensor<62xi32>) "
            "-> tensor<62xi32>\nreturn %more",
        )
        + CONVOLUTION.replace("@main", "@again")
    )
    a, b, z = numbers(62), numbers(3), np.zeros(62, np.int32)
    (once,), single = run(CONVOLUTION_PROGRAM + CONVOLUTION, [a, b, z])
    (twice,), report = run(text, [a, b, z])
    assert np.array_equal(twice, 2 * once)
    assert (report.launches, report.cycles) == (2, 2 * single.cycles)
    assert report.layout_cycles == 2 * single.layout_cycles
    assert report.energy_nj == {name: 2 * x for name, x in single.energy_nj.items()}
    assert count(module_of(text), "main", machine()) == report


def test_a_launch_starts_on_an_empty_machine() -> None:
    """Neither weights nor sums of a launch are there in the next one."""
    text = ACCUMULATED + program("cim.mvm %c0 step 0 macros 1 rows 1 bits 8").replace("@k", "@m")
    text = text.replace(
        "return %r",
        "%q = cim.launch @m(%a, %b) : (tensor<16xi8>, tensor<64xi8>) -> tensor<16xi32>\nreturn %r",
    )
    with pytest.raises(UserError, match="0 rows of it have weights"):
        run(text, [numbers(16), numbers(64)])


def test_a_function_without_launches() -> None:
    text = "func.func @main(%a: tensor<2x3xi8>) -> tensor<2x3xi8> {\nreturn %a : tensor<2x3xi8>\n}"
    x = numbers(6).reshape(2, 3)
    (got,), report = run(text, [x])
    assert np.array_equal(got, x)
    assert (report.cycles, report.seconds, report.utilisation) == (0, 0, None)


# -- speed ---------------------------------------------------------------------------------------


def test_twenty_thousand_macro_steps_take_seconds() -> None:
    """As many as MobileNetV2's largest layer has on eight macros."""
    steps = 19_600
    x, w = numbers(steps * 256), numbers(2048)
    module = module_of(mvms(steps, 8, 32))
    begun = time.process_time()
    results, report = CimSimulator(machine()).run(module, "main", [x, w])
    assert time.process_time() - begun < 5.0
    assert np.array_equal(results[0], products(x, w, 8, 32))
    assert report.mvms == steps


@settings(max_examples=40, deadline=None)
@given(
    steps=st.integers(0, 5),
    macros=st.integers(1, 8),
    rows=st.integers(1, 32),
    bits=st.sampled_from([4, 8, 16]),
)
def test_counting_needs_no_data(steps: int, macros: int, rows: int, bits: int) -> None:
    text = mvms(steps, macros, rows, bits)
    columns = machine().columns_of(bits)
    x, w = some(steps * macros * rows + 2, bits), some(rows * macros * columns, bits)
    (got,), report = run(text, [x[2:], w])
    assert np.array_equal(got, products(x[2:], w, macros, rows))
    assert count(module_of(text), "main", machine()) == report


WALKED = """
%n = arith.constant 3 : index
%two = arith.constant 2 : index
%half = arith.constant 32 : index
scf.for %j = %c0 to %c1 step %c1 {
  %e:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %w, %q = %y) -> (index, index) {
    cim.copy global[%x] to input_register[%c0] bytes 4
    cim.load_weights %p macros 1 rows 4
    cim.mvm %c0 step 0 macros 1 rows 4 bits 4
    cim.copy output_register[%c0] to global[%q] bytes 64
    %p1 = arith.addi %p, %half : index
    %q1 = arith.addi %q, %half : index
    %q2 = arith.addi %q1, %half : index
    scf.yield %p1, %q2 : index, index
  }
}
"""


def test_weights_of_4_bits_share_bytes_however_they_are_reached() -> None:
    """Three sets of 4 x 16 weights, at an address that a loop carries."""
    text = launched(WALKED, "tensor<4xi4>", "tensor<192xi4>", "tensor<48xi32>")
    x, w = some(4, 4), some(192, 4)
    (got,), _ = run(text, [x, w])
    expected = np.einsum("r,src->sc", x.astype(np.int64), w.reshape(3, 4, 16).astype(np.int64))
    assert got.tolist() == expected.reshape(-1).tolist()
