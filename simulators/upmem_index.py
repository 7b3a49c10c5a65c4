"""Index values in generated kernels: a Python int where all lanes agree, int64 arrays elsewhere."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation

from cim_opt.simulators.integer_functions import Function, Values


def on_indices(op: Operation, function: Function) -> Function:
    """`function`, which knows NumPy scalars only, for an operation with `index` values."""
    takes = any(isinstance(value.type, IndexType) for value in op.operands)
    gives = any(isinstance(value.type, IndexType) for value in op.results)
    if not takes and not gives:
        return function

    def to_numpy(value: Values) -> Values:
        return np.int64(value) if isinstance(value, int) else value

    def wrapped(*values: Values) -> Values:
        result = function(*map(to_numpy, values))
        return int(result) if gives and np.ndim(result) == 0 else result

    return wrapped
