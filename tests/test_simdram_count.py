"""Counting without data: the same numbers as the simulator, at any length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_pipelines import Program, programs
from simdram_programs import function, machine, module_of, run
from small_machine import SMALL_SIMDRAM_MACHINES, write_machines

from cim_opt.errors import UserError
from cim_opt.hardware.simdram import load_machine
from cim_opt.microprograms.library import LIBRARY_NAMES, library
from cim_opt.passes.pipelines import PatternToSimdramPipeline
from cim_opt.simulators.simdram import SimdramSimulator
from cim_opt.simulators.simdram_count import CountReport, count
from cim_opt.simulators.simdram_report import SimdramReport
from cim_opt.tools.load_module import full_context

EXAMPLES = Path(__file__).parent.parent / "examples"
COUNTED = (
    "dot_product",
    "extreme",
    "histogram",
    "moving_average",
    "prefix_sum",
    "vector_add",
)
LENGTHS = (0, 1, 2, 1000, 65535, 65536, 65537, 200_000, 1_000_003)


def same(counted: CountReport, report: SimdramReport) -> None:
    """Asserts that a count is what a run took."""
    assert not counted.unknown_scalars
    for name in ("bbops", "aap", "ap", "commands", "rows_peak"):
        assert getattr(counted, name) == getattr(report, name), name
    for name in ("limited_seconds", "unlimited_seconds", "energy_nj", "host_seconds"):
        assert getattr(counted, name) == pytest.approx(getattr(report, name), rel=1e-9), name
    assert counted.transposed_bytes == report.transposed.bytes
    assert counted.read_bytes == report.read_back.bytes
    assert counted.utilisation == pytest.approx(report.utilisation, rel=1e-12)


def lowered(text: str, **options: Any) -> Any:
    """The module of a text after the pipeline."""
    module = module_of(text)
    PatternToSimdramPipeline(**options).apply(full_context(), module)
    module.verify()
    return module


def example(name: str) -> str:
    return (EXAMPLES / f"{name}.mlir").read_text()


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("length", LENGTHS)
def test_examples_are_counted_as_they_run(name: str, length: int) -> None:
    module = lowered(example(name))
    (entry,) = [op for op in module.ops if op.name == "func.func"]
    rng = np.random.default_rng(0)
    args: list[Any] = []
    shapes: list[tuple[int, ...]] = []
    for arg in entry.body.block.args:
        shape = tuple(length if n < 0 else n for n in arg.type.get_shape())
        shapes.append(shape)
        dtype = f"int{arg.type.element_type.width.data}"
        args.append(rng.integers(0, 16, shape, dtype))
    name = entry.sym_name.data
    _, report = SimdramSimulator(load_machine("simdram-1")).run(module, name, args)
    same(count(module, name, shapes), report)


@pytest.fixture(scope="module")
def small_machines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return write_machines(tmp_path_factory.mktemp("machines"))


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    programs(floats=False),
    st.sampled_from(("simdram-1", *SMALL_SIMDRAM_MACHINES)),
    st.sampled_from(LIBRARY_NAMES),
    st.booleans(),
    st.sampled_from(("auto", "output-stationary", "reduction-in-lane")),
    st.integers(0, 1000),
)
def test_random_programs_are_counted_as_they_run(
    small_machines: dict[str, str],
    program: Program,
    machine: str,
    chosen: str,
    narrow: bool,
    mapping: Any,
    seed: int,
) -> None:
    path = small_machines.get(machine, machine)
    options = {"machine": path, "library": chosen, "narrow": narrow, "mapping": mapping}
    module = lowered(program.text, **options)
    args = list(program.inputs(seed).values())
    try:
        _, report = SimdramSimulator(library=chosen).run(module, "main", args)
    except UserError:
        return  # A length that its groups do not divide.
    shapes = [np.shape(arg) for arg in args]
    try:
        counted = count(module, "main", shapes, library=chosen)
    except UserError as error:
        assert "depends on the program's data" in error.message()
        assert "simdram.compact" in str(module) or "pattern.filter" in str(module)
        return
    if counted.unknown_scalars:
        assert counted.bbops == report.bbops
        assert counted.transposed_bytes == report.transposed.bytes
        assert counted.read_bytes == report.read_back.bytes
        return
    same(counted, report)


TRIANGLE = function(
    """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %a, %c0 : tensor<?xi32>
  %e = tensor.empty(%n) : tensor<?xi32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %e) -> (tensor<?xi32>) {
    %y = scf.for %j = %i to %n step %c1 iter_args(%z = %x) -> (tensor<?xi32>) {
      %left = arith.subi %n, %j : index
      %v = simdram.transpose %a[%j] stride %c1 count %left : tensor<?xi32> -> !simdram.vec<32>
      %even = arith.constant 2 : index
      %rest = arith.remui %j, %even : index
      %known = arith.index_cast %rest : index to i32
      %p = simdram.mul_scalar %v, %known : !simdram.vec<32>, i32 -> !simdram.vec<32>
      %t = simdram.read %p into %z[%j] stride %c1 : !simdram.vec<32>, tensor<?xi32>
      scf.yield %t : tensor<?xi32>
    }
    scf.yield %y : tensor<?xi32>
  }
  func.return %r : tensor<?xi32>
""",
    "%a: tensor<?xi32>",
    "tensor<?xi32>",
)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 17])
def test_rounds_that_differ_are_counted_one_by_one(length: int) -> None:
    small = machine(columns=64, row_bytes=8)
    module = module_of(TRIANGLE)
    _, report = run(module, [np.arange(length, dtype=np.int32)], machine=small)
    same(count(module, "main", [length], machine=small), report)


MEAN = """
func.func @main(%a: tensor<?xi32>, %k: i32 {pattern.range = [0, 3]}) -> tensor<?xi32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %a, %c0 : tensor<?xi32>
  %e = tensor.empty(%n) : tensor<?xi32>
  %v = simdram.transpose %a[%c0] stride %c1 count %n : tensor<?xi32> -> !simdram.vec<32>
  %p = simdram.mul_scalar %v, %k : !simdram.vec<32>, i32 -> !simdram.vec<32>
  %r = simdram.read %p into %e[%c0] stride %c1 : !simdram.vec<32>, tensor<?xi32>
  func.return %r : tensor<?xi32>
}
"""


def test_unknown_scalars_are_counted_as_the_mean_over_their_range() -> None:
    module = module_of(MEAN)
    vector = np.zeros(10, np.int32)
    simulator = SimdramSimulator(load_machine("simdram-1"))
    runs = [simulator.run(module, "main", [vector, k])[1].commands for k in range(4)]
    counted = count(module, "main", [10, ()], machine=load_machine("simdram-1"))
    assert counted.unknown_scalars
    assert len(set(runs)) > 1
    assert counted.commands == pytest.approx(sum(runs) / 4)


def test_products_with_scalars_can_be_charged_as_products_of_two_objects() -> None:
    module, simdram_1 = module_of(MEAN), load_machine("simdram-1")
    short = count(module, "main", [10, ()], machine=simdram_1, products="objects")
    full = count(module, "main", [10, ()], machine=simdram_1, products="full", library="simdram")
    assert short.commands == library("cim-opt").counts("mul", 32).total
    assert full.commands == 11103


def stage(outputs: int, group: int, **options: Any) -> CountReport:
    """Products of `group` numbers summed for each of so many outputs, published programs."""
    text = f"""
func.func @main(%a: tensor<{outputs * group}xi32>, %b: tensor<{outputs * group}xi32>)
    -> tensor<{outputs}xi32> {{
  %y = pattern.group<{group}>(%r in %a : tensor<{outputs * group}xi32>,
      %s in %b : tensor<{outputs * group}xi32>) -> tensor<{outputs}xi32> {{
    %zero = arith.constant 0 : i32
    %t = pattern.reduce(%x in %r : tensor<{group}xi32>, %z in %s : tensor<{group}xi32>)
        init(%acc = %zero : i32) {{
      %p = arith.muli %x, %z : i32
      %n = arith.addi %acc, %p : i32
      pattern.yield %n : i32
    }} combine(%l, %m) {{
      %n = arith.addi %l, %m : i32
      pattern.yield %n : i32
    }}
    pattern.yield %t : i32
  }}
  func.return %y : tensor<{outputs}xi32>
}}"""
    module = lowered(text, library="simdram", narrow=False, **options)
    lengths = [outputs * group] * 2
    return count(module, "main", lengths, library="simdram", products="full")


def test_doitgen_at_full_size_is_the_arithmetic_of_the_mapping() -> None:
    """10^6 * 10,000 outputs of 10,000 inputs; the other mapping takes 6.405 times the commands."""
    outputs, group = 10**6, 10_000
    product, sum_ = 11 * 32 * 32 - 5 * 32 - 1, 8 * 32 + 1
    in_lane = stage(outputs, group, mapping="reduction-in-lane")
    stationary = stage(outputs, group)
    tiles = -(-outputs // 65536)
    assert in_lane.commands == outputs * product
    assert stationary.commands == tiles * (group * product + (group - 1) * sum_)
    assert in_lane.utilisation == pytest.approx(group / 65536)
    assert stationary.read_bytes == tiles * 32 * 8192


def test_a_full_product_takes_the_published_commands() -> None:
    assert library("simdram").counts("mul", 64, a_width=32, b_width=32).total == 11103


@pytest.mark.parametrize(
    ("text", "lengths", "message"),
    [
        (example("select_above"), [100, ()], "depends on the program's data"),
        (example("unique"), [100], "depends on the program's data"),
        (example("vector_add"), [100], "1 lengths for function 'main'"),
        (example("gemv"), [6400, 65], "length 65 for an argument of type tensor<64xi32>"),
    ],
)
def test_what_cannot_be_counted_is_refused(text: str, lengths: Any, message: str) -> None:
    name = text.split("@")[1].split("(")[0]
    with pytest.raises(UserError) as raised:
        count(lowered(text), name, lengths)
    assert message.replace("'main'", f"'{name}'") in raised.value.message()


def test_a_full_product_of_more_than_32_bits_is_refused() -> None:
    text = """
func.func @main(%a: tensor<9xi64>) -> tensor<9xi64> {
  %b = pattern.map(%x in %a : tensor<9xi64>) -> tensor<9xi64> {
    %y = arith.muli %x, %x : i64
    pattern.yield %y : i64
  }
  func.return %b : tensor<9xi64>
}"""
    with pytest.raises(UserError, match="a full product of 64 bits"):
        count(lowered(text, narrow=False), "main", [9], products="full")
