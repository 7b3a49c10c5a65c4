"""The Python frontend: pipelines of data-parallel patterns, traced from ordinary functions."""

from cim_opt.frontend.execution import Execution
from cim_opt.frontend.functions import (
    cast,
    ceil,
    clip,
    exp,
    floor,
    log,
    maximum,
    minimum,
    sqrt,
    tanh,
    truncdiv,
    truncmod,
    where,
)
from cim_opt.frontend.pipeline import Pipeline
from cim_opt.frontend.values import Scalar, Slice
from cim_opt.frontend.vectors import Vector

__all__ = [
    "Execution",
    "Pipeline",
    "Scalar",
    "Slice",
    "Vector",
    "cast",
    "ceil",
    "clip",
    "exp",
    "floor",
    "log",
    "maximum",
    "minimum",
    "sqrt",
    "tanh",
    "truncdiv",
    "truncmod",
    "where",
]
