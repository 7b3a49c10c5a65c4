"""Kernels as C programs: compiled, run with threads as tasklets, compared with the reference."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlir_examples import full_context, parsed
from random_pipelines import Program, programs
from upmem_c import run_compiled
from upmem_lowering import vector
from upmem_programs import module_of
from xdsl.dialects.func import FuncOp

from cim_opt.errors import UserError
from cim_opt.lowering.translate_upmem_to_c import UpmemCTarget, c_files
from cim_opt.passes.pipelines import PatternToUpmemPipeline
from cim_opt.simulators.compare import compare, rules_for
from cim_opt.simulators.reference import run_function
from cim_opt.tools.load_module import parse_text
from cim_opt.tools.pnm_workloads import SMALL

CONTEXT = full_context()
EXAMPLES = Path(__file__).parent.parent / "examples"


def check(text: str, args: list[Any], folder: Path, *flags: str, **options: Any) -> None:
    """Lowers @main for a few DPUs, runs its kernels as C, and compares with the reference."""
    module = parsed(text, CONTEXT)
    entry = next(op.sym_name.data for op in module.body.block.ops if isinstance(op, FuncOp))
    expected = run_function(module, entry, args)
    rules = rules_for(module, entry, args)
    choices: dict[str, Any] = {"dpus": 3} | options
    PatternToUpmemPipeline(machine="upmem-2560", **choices).apply(CONTEXT, module)
    got = run_compiled(module, entry, args, folder, *flags)
    for one, other, rule in zip(expected, got, rules, strict=True):
        mismatch = compare(one, other, rule)
        assert mismatch is None, f"{mismatch}\n{text}"


@pytest.mark.parametrize("name", SMALL)
def test_workloads(name: str, tmp_path: Path) -> None:
    arrays = SMALL[name].arrays(800, np.random.default_rng(0))
    pipeline = SMALL[name].pipeline(*arrays)
    module = pipeline.module()
    PatternToUpmemPipeline(machine="upmem-2560", dpus=3).apply(CONTEXT, module)
    got = run_compiled(module, pipeline.name, list(pipeline.arguments().values()), tmp_path)
    for one, other in zip(got, SMALL[name].reference(*arrays), strict=True):
        assert (np.asarray(one).view(np.asarray(other).dtype) == other).all()


MAP = """
func.func @main(%a: tensor<?xT>, %b: tensor<?xT>) -> (tensor<?xT>, tensor<?xT>) {
  %y, %z = pattern.map(%x in %a : tensor<?xT>, %w in %b : tensor<?xT>)
      -> (tensor<?xT>, tensor<?xT>) {
    BODY
    pattern.yield %p, %q : T, T
  }
  func.return %y, %z : tensor<?xT>, tensor<?xT>
}
"""
INTEGER_OPS = (
    ("addi", "subi"),
    ("muli", "andi"),
    ("ori", "xori"),
    ("shli", "shrui"),
    ("shrsi", "divsi"),
    ("divui", "remsi"),
    ("remui", "minsi"),
    ("maxsi", "minui"),
    ("maxui", "floordivsi"),
    ("ceildivsi", "ceildivui"),
)


@pytest.mark.parametrize("element", ["i8", "i16", "i32", "i64"])
def test_integer_operations_at_their_limits(element: str, tmp_path: Path) -> None:
    """Each pair of operations as one program, of which the sanitizers find nothing wrong."""
    dtype = np.dtype(f"int{element[1:]}")
    info, bits = np.iinfo(dtype), dtype.itemsize * 8
    edges = np.array([0, 1, -1, 2, info.min, info.max, bits - 1, bits, -bits, 7, -8], dtype)
    a, b = (grid.ravel() for grid in np.meshgrid(edges, edges))
    for number, (one, other) in enumerate(INTEGER_OPS):
        body = f"%p = arith.{one} %x, %w : T\n%q = arith.{other} %x, %w : T"
        folder = tmp_path / str(number)
        folder.mkdir()
        text = MAP.replace("BODY", body).replace("T", element)
        check(text, [a, b], folder, "-fsanitize=undefined", "-fno-sanitize-recover", dpus=2)


I1_OPS = (("shli", "shrui"), ("shrsi", "minsi"), ("maxsi", "divsi"), ("remsi", "maxui"))


def test_operations_on_single_bits(tmp_path: Path) -> None:
    """As signed numbers they are 0 and -1."""
    a, b = np.array([0, 0, 1, 1] * 9, bool), np.array([0, 1, 0, 1] * 9, bool)
    for number, (one, other) in enumerate(I1_OPS):
        folder = tmp_path / str(number)
        folder.mkdir()
        body = f"%p = arith.{one} %x, %w : T\n%q = arith.{other} %x, %w : T"
        check(MAP.replace("BODY", body).replace("T", "i1"), [a, b], folder)


def test_rows_of_wram_start_at_multiples_of_eight() -> None:
    buffer = "%w = upmem.wram : memref<3xi16, #upmem<space wram>>"
    module = module_of(f"upmem.kernel @k tasklets 2 () {{ {buffer}\n upmem.return }}")
    assert "uint16_t w0[NR_TASKLETS][4];" in c_files(module)["k.c"]


def test_floats_comparisons_and_casts(tmp_path: Path) -> None:
    text = """
    func.func @main(%a: tensor<?xf32>, %b: tensor<?xi8>)
        -> (tensor<?xf32>, tensor<?xi64>, tensor<?xi1>) {
      %y, %z, %w = pattern.map(%x in %a : tensor<?xf32>, %i in %b : tensor<?xi8>)
          -> (tensor<?xf32>, tensor<?xi64>, tensor<?xi1>) {
        %half = arith.constant 0.5 : f32
        %m = arith.mulf %x, %half : f32
        %d = arith.divf %m, %x : f32
        %s = arith.subf %d, %m : f32
        %n = arith.negf %s : f32
        %zero = arith.constant 0 : i8
        %p = arith.cmpi slt, %i, %zero : i8
        %q = arith.cmpi uge, %i, %zero : i8
        %r = arith.xori %p, %q : i1
        %t = arith.select %p, %n, %m : f32
        %u = arith.extsi %i : i8 to i64
        %v = arith.extui %r : i1 to i64
        %k = arith.extsi %r : i1 to i64
        %l = arith.addi %u, %v : i64
        %o = arith.subi %l, %k : i64
        pattern.yield %t, %o, %r : f32, i64, i1
      }
      func.return %y, %z, %w : tensor<?xf32>, tensor<?xi64>, tensor<?xi1>
    }
    """
    check(text, [vector("f32", 1001), vector("i8", 1001)], tmp_path)


@st.composite
def options(draw: st.DrawFn) -> dict[str, Any]:
    """Of the lowering."""
    found: dict[str, Any] = {"tasklets": draw(st.sampled_from((1, 2, 3, 16)))}
    return found | {"unroll": draw(st.sampled_from((1, 3)))}


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    derandomize=True,
)
@given(program=programs(), seed=st.integers(0, 2**16), chosen=options())
def test_random_pipelines(
    tmp_path_factory: pytest.TempPathFactory, program: Program, seed: int, chosen: dict[str, Any]
) -> None:
    inputs = list(program.inputs(seed).values())
    try:
        check(program.text, inputs, tmp_path_factory.mktemp("c"), **chosen)
    except UserError as error:
        assert "has no translation to C" in error.message()


@pytest.mark.parametrize("name", ["dot_product", "histogram", "prefix_sum", "moving_average"])
def test_examples_of_odd_sizes(name: str, tmp_path: Path) -> None:
    text = (EXAMPLES / f"{name}.mlir").read_text()
    module = parse_text(text, name)
    function = next(iter(module.body.block.ops))
    types = [str(arg.type) for arg in function.regions[0].block.args]
    for size in (1, 13, 2561):
        folder = tmp_path / str(size)
        folder.mkdir()
        args = [vector(t.removeprefix("tensor<?x").rstrip(">"), size) for t in types]
        check(text, args, folder)


@dataclass
class Refusal:
    text: str
    message: str


REFUSALS = {
    "no kernel": Refusal("func.func @f() { func.return }", "the module has no upmem.kernel"),
    "operation": Refusal(
        """upmem.kernel @k tasklets 1 (%x: f32) {
          %y = math.absf %x : f32
          upmem.return
        }""",
        "'math.absf' has no translation to C; arith on integers",
    ),
    "name": Refusal(
        'upmem.kernel @"../k" tasklets 1 () { upmem.return }',
        "kernel '../k' has no name in C; C names are of letters, digits and _; rename it",
    ),
    "type": Refusal(
        """upmem.kernel @k tasklets 1 (%x: i24) {
          %y = arith.addi %x, %x : i24
          upmem.return
        }""",
        "'upmem.kernel' on i24; C has integers of 8, 16, 32 and 64 bits",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_has_no_translation(name: str) -> None:
    with pytest.raises(UserError, match=REFUSALS[name].message):
        c_files(module_of(REFUSALS[name].text))


def test_files_stand_behind_their_names() -> None:
    module = module_of("upmem.kernel @k tasklets 2 () { upmem.return }")
    output = io.StringIO()
    UpmemCTarget().emit(CONTEXT, module, output)
    texts = output.getvalue().split("// ----- ")[1:]
    assert [text.split("\n", 1) for text in texts] == [
        list(pair) for pair in c_files(module).items()
    ]
