"""A kernel's iterations and accesses as isl texts, over S[g, oc, ic, o0 .., k0 ..].

Elements are I[g, ic, x..], O[g, oc, o..] and W[g, oc, ic, k..], with x = stride * o + dilation * k:
padding is not subtracted, so that elements outside of the input have numbers too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from cim_opt.polyhedral.kernel import MacKernel
from cim_opt.polyhedral.nest import Factors


@dataclass(frozen=True, slots=True)
class KernelText:
    """The domain of a kernel and the maps from iterations to the elements they use."""

    domain: str
    input: str
    output: str
    weight: str


def loop_names(kernel: MacKernel) -> tuple[str, ...]:
    """Names of all loops in the order of S."""
    outputs = (f"o{i}" for i in range(kernel.rank))
    taps = (f"k{i}" for i in range(kernel.rank))
    return ("g", "oc", "ic", *outputs, *taps)


def statement(kernel: MacKernel) -> str:
    """S with the names of all loops."""
    return f"S[{', '.join(loop_names(kernel))}]"


def kernel_text(kernel: MacKernel) -> KernelText:
    """The texts of a kernel; loops of one iteration are written too."""
    sizes = (kernel.groups, kernel.out_channels, kernel.in_channels)
    sizes += (*kernel.output_shape, *kernel.tap_shape)
    names = loop_names(kernel)
    inside = " and ".join(f"0 <= {n} < {size}" for n, size in zip(names, sizes, strict=True))
    rank, here = kernel.rank, statement(kernel)
    outputs, taps = names[3 : 3 + rank], names[3 + rank :]
    reads = [
        f"{axis.stride}*{o} + {axis.dilation}*{k}"
        for axis, o, k in zip(kernel.axes, outputs, taps, strict=True)
    ]
    return KernelText(
        f"{{ {here} : {inside} }}",
        f"{{ {here} -> I[{', '.join(('g', 'ic', *reads))}] }}",
        f"{{ {here} -> O[{', '.join(('g', 'oc', *outputs))}] }}",
        f"{{ {here} -> W[{', '.join(('g', 'oc', 'ic', *taps))}] }}",
    )


def level_texts(name: str, factors: Factors) -> list[str]:
    """Expressions of the levels of a loop, outermost first."""
    texts: list[str] = []
    for place in range(len(factors)):
        scale = prod(factors[place + 1 :])
        inner = name if place == 0 else f"({name} mod {scale * factors[place]})"
        texts.append(inner if scale == 1 else f"floor({inner}/{scale})")
    return texts


def linear_text(coefficients: Sequence[int], names: Sequence[str], constant: int = 0) -> str:
    """A sum of multiples of expressions; "0" when there is none."""
    terms = [
        name if factor == 1 else f"({factor}*{name})"
        for factor, name in zip(coefficients, names, strict=True)
        if factor
    ]
    if constant or not terms:
        terms.append(str(constant))
    return " + ".join(terms)
