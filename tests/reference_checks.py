"""What the tests of the reference share: parsing, random arguments, exact comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from cim_opt.dialects.pattern import Pattern
from cim_opt.simulators.elementwise import dtype_of
from cim_opt.simulators.host_tensors import shape_of


def parse(text: str) -> ModuleOp:
    context = Context()
    for name, factory in get_all_dialects().items():
        context.register_dialect(name, factory)
    if "pattern" not in context.registered_dialect_names:
        context.register_dialect("pattern", lambda: Pattern)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def random_arguments(
    module: ModuleOp, length: int, seed: int = 0, small: bool = False
) -> list[Any]:
    """Arguments of @f; vectors of unknown length get `length` elements."""
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    rng = np.random.default_rng(seed)
    args = list[Any]()
    for arg in function.body.block.args:
        dtype, shape = dtype_of(arg.type), shape_of(arg.type)
        count = length if shape[0] < 0 else shape[0]
        if dtype == np.bool_:
            args.append(rng.integers(0, 2, count).astype(np.bool_))
        elif dtype.kind == "f":
            args.append(rng.standard_normal(count, np.float32))
        else:
            low, high = (-8, 9) if small else (np.iinfo(dtype).min, np.iinfo(dtype).max)
            args.append(rng.integers(low, high, count, dtype, endpoint=not small))
    return args


def assert_same(got: list[Any], expected: list[Any]) -> None:
    assert len(got) == len(expected)
    for have, want in zip(got, expected, strict=True):
        assert have.dtype == want.dtype
        assert np.array_equal(np.asarray(have), np.asarray(want), equal_nan=have.dtype.kind == "f")
