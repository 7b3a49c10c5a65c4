"""`pattern-narrow`: the same results, in fewer bits."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_pipelines import DTYPES, Program, programs
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.universe import Universe

from cim_opt.passes.narrow_policy import Widths
from cim_opt.passes.pattern_fuse import PatternFusePass
from cim_opt.passes.pattern_narrow import PatternNarrowPass
from cim_opt.simulators.reference import run_function

WIDTHS: tuple[Widths, ...] = ("native", "any")


def parsed(text: str) -> ModuleOp:
    context = Context()
    for name, dialect in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, dialect)
    return Parser(context, text).parse_module()


def narrowed(text: str, widths: Widths = "native") -> ModuleOp:
    module = parsed(text)
    PatternNarrowPass(widths).apply(Context(), module)
    module.verify()
    return module


def check_same(text: str, args: list[object], widths: Widths, fuse: bool = False) -> None:
    before = parsed(text)
    if fuse:
        PatternFusePass().apply(Context(), before)
    module = narrowed(str(before), widths)
    expected = run_function(before, "main", args)
    got = run_function(module, "main", args)
    for one, other in zip(expected, got, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other, err_msg=f"{text}\n{module}")


# -- random programs -------------------------------------------------------------------------------


@st.composite
def declared(draw: st.DrawFn) -> tuple[str, list[object]]:
    """A random program, some of whose arguments have declared ranges, and inputs within them."""
    program: Program = draw(programs())
    text = program.text
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    args: list[object] = []
    for index, (element, length) in enumerate(program.arguments):
        if element == "f32":
            args.append(rng.standard_normal(length, np.float32))
            continue
        width = int(element[1:])
        low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
        if element != "i1" and draw(st.integers(0, 3)):
            size = 1 << draw(st.integers(0, width))
            low = draw(st.sampled_from([0, 0, -(size // 2), 1, low]))
            most = min((1 << width) - 1, (1 << 63) - 1)  # what the attribute holds
            high = draw(st.sampled_from([min(low + size - 1, high), most]))
            high = high if low >= 0 else min(high, (1 << (width - 1)) - 1)
            text = re.sub(
                rf"(%arg{index}: [^,)]+)", rf"\1 {{pattern.range = [{low}, {high}]}}", text, count=1
            )
        edges = rng.choice(np.array([low, high], object), size=length)
        span = high - low + 1
        drawn = [
            low + int(x) % span
            for x in rng.integers(0, 1 << 62, size=1 if length is None else length)
        ]
        values = np.array(drawn, object) if length is not None else np.array(drawn[0], object)
        if rng.integers(2):
            values = np.where(rng.integers(2, size=length), edges, values)
        wrapped = (np.asarray(values) + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
        plain = (np.asarray(values) % 2) if width == 1 else wrapped
        args.append(np.asarray(plain).astype(DTYPES[element])[()])
    return text, args


@pytest.mark.parametrize("widths", WIDTHS)
@settings(max_examples=100, deadline=None)
@given(case=declared(), fuse=st.booleans())
def test_random_programs(widths: Widths, case: tuple[str, list[object]], fuse: bool) -> None:
    text, args = case
    check_same(text, args, widths, fuse)
