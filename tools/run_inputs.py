"""The inputs of a run: read from .npy files or random, in the types and sizes of the entry.

An argument goes by its name in the file: `%a` is `a`. One without a letter in its name (`%0`),
which the parser does not keep, goes by its position: `0`.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument
from xdsl.utils.hints import isa

from cim_opt.errors import UserError
from cim_opt.locations import location_of
from cim_opt.simulators.declared_ranges import draw, range_of
from cim_opt.simulators.elementwise import dtype_of

Values = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Sizes:
    """What `--size` said: one length for every `?`, and lengths of single arguments."""

    every: int | None = None
    of: Mapping[str, int] = field(default_factory=dict[str, int])


def parse_sizes(texts: Sequence[str]) -> Sizes:
    """Reads `K` and `ARG=K`. Raises UserError when one is negative or says a thing twice.

    Raises ValueError, for the caller to call bad usage, when a text is neither.
    """
    every: int | None = None
    of: dict[str, int] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        size = int(number)
        if equals and not name:
            raise ValueError(text)
        if size < 0:
            raise UserError(f"--size {text}", "a length is 0 or more", "give such a number")
        before = of.get(_bare(name)) if equals else every
        if before not in (None, size):
            raise UserError(
                f"--size {text} after {f'{name}=' if equals else ''}{before}",
                "an argument has one length",
                "leave one of them out",
            )
        if equals:
            of[_bare(name)] = size
        else:
            every = size
    return Sizes(every, of)


def parse_inputs(texts: Sequence[str]) -> dict[str, str]:
    """Reads `NAME=FILE` texts. Raises UserError when a name comes twice, ValueError on the rest."""
    files: dict[str, str] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise ValueError(text)
        if _bare(name) in files:
            raise UserError(
                f"--input {_bare(name)} twice", "an argument has one input", "leave one out"
            )
        files[_bare(name)] = path
    return files


def _bare(name: str) -> str:
    return name.removeprefix("%")


def argument_names(entry: FuncOp) -> list[str]:
    """The names of the entry's arguments as in the file, without `%`; see the module's text."""
    return [arg.name_hint or str(arg.index) for arg in entry.body.block.args]


def make_inputs(
    entry: FuncOp, sizes: Sizes, files: Mapping[str, str], seed: int
) -> dict[str, Values]:
    """One array an argument, 0-D for a scalar, by name and in order.

    An argument without a file is random: integers over the whole range of their type, or that
    which the entry declares for them (`pattern.range`); f32 normally distributed around 0 with
    deviation 1. Each argument has its own stream of numbers, so that giving one does not change
    the others.

    Raises UserError for a length that is missing, in contradiction or for a static argument, an
    unknown name, a file that cannot be read or does not fit, or inputs larger than the memory.
    """
    args = dict(zip(argument_names(entry), entry.body.block.args, strict=True))
    _check_names("--input", files, args)
    _check_names("--size", sizes.of, args)
    _check_sizes_used(entry, args, sizes)
    given = {name: _from_file(name, args[name], path) for name, path in files.items()}
    for name, array in given.items():
        _check_size_of_file(name, args[name], array, sizes)
    shapes = {
        name: _shape(entry, name, arg, sizes) for name, arg in args.items() if name not in given
    }
    _check_memory(args, shapes)
    return {
        name: given[name]
        if name in given
        else _random(arg, shapes[name], np.random.default_rng([seed, arg.index]))
        for name, arg in args.items()
    }


def _check_names(
    option: str, names: Mapping[str, object], args: Mapping[str, BlockArgument]
) -> None:
    for name in names:
        if name not in args:
            raise UserError(
                f"{option}: no argument %{name}",
                f"the entry takes {', '.join(f'%{a}' for a in args) or 'none'}",
                "name one of these" if args else "leave the option out",
            )


def _dimensions(attr: Attribute) -> tuple[int, ...]:
    """The shape of a tensor with -1 for `?`; () for a scalar."""
    return attr.get_shape() if isa(attr, TensorType) else ()


def _is_dynamic(arg: BlockArgument) -> bool:
    return DYNAMIC_INDEX in _dimensions(arg.type)


def _check_sizes_used(entry: FuncOp, args: Mapping[str, BlockArgument], sizes: Sizes) -> None:
    for name in sizes.of:
        if not _is_dynamic(args[name]):
            raise UserError(
                f"--size {name}={sizes.of[name]}",
                f"%{name} is {args[name].type}, which has no `?` length",
                "leave it out",
            )
    if sizes.every is not None and not any(map(_is_dynamic, args.values())):
        raise UserError(
            f"--size {sizes.every}",
            f"no argument of @{entry.sym_name.data} has a `?` length",
            "leave it out",
        )


def _shape(entry: FuncOp, name: str, arg: BlockArgument, sizes: Sizes) -> tuple[int, ...]:
    size = sizes.of.get(name, sizes.every)
    if size is None and _is_dynamic(arg):
        raise UserError(
            f"%{name} is {arg.type} and has no length",
            "every `?` needs one",
            f"add --size K, --size {name}=K or --input {name}=FILE.npy",
            location_of(entry),
        )
    return tuple(size or 0 if n == DYNAMIC_INDEX else n for n in _dimensions(arg.type))


def _element_dtype(name: str, attr: Attribute) -> np.dtype[Any]:
    """The dtype of an argument's elements. Raises UserError when it is not a number or tensor."""
    element = attr.element_type if isa(attr, TensorType) else attr
    try:
        return dtype_of(element)
    except UserError as error:
        raise UserError(
            f"%{name} is {attr}",
            "inputs are numbers and tensors of i1, i8, i16, i32, i64, index, f32 and f64",
            "choose another entry or argument type",
        ) from error


def _check_memory(args: Mapping[str, BlockArgument], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Refuses sizes that the machine under us cannot hold, rather than be killed by it."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    need = 0
    for name, shape in shapes.items():
        count = 1
        for n in shape:
            count *= n
        need += count * _element_dtype(name, args[name].type).itemsize
    if need > memory:
        raise UserError(
            f"the inputs need {need} bytes",
            f"this computer has {memory} bytes of memory",
            "choose a smaller --size",
        )


def _random(arg: BlockArgument, shape: tuple[int, ...], rng: np.random.Generator) -> Values:
    dtype = _element_dtype("", arg.type)
    declared = range_of(arg)
    if declared is not None:
        return draw(declared, shape, dtype, rng)
    if dtype.kind == "f":
        return np.asarray(rng.standard_normal(shape, dtype=dtype.type))
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape, dtype=np.int8)).astype(np.bool_)
    limits = np.iinfo(dtype)
    return np.asarray(rng.integers(limits.min, limits.max, shape, dtype.type, endpoint=True))


def _from_file(name: str, arg: BlockArgument, path: str) -> Values:
    array = _load(name, path)
    dtype = _element_dtype(name, arg.type)
    # MLIR's integers have no sign of their own: uint8 is as good an i8 as int8.
    if array.dtype.kind == "u" and dtype.kind == "i" and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)
    if array.dtype != dtype:
        raise UserError(
            f"--input {name}: {path} holds {array.dtype}",
            f"%{name} is {arg.type}, which takes {dtype}",
            "convert it with astype",
        )
    dimensions = _dimensions(arg.type)
    if len(dimensions) != array.ndim or any(
        n not in (DYNAMIC_INDEX, m) for n, m in zip(dimensions, array.shape, strict=True)
    ):
        raise UserError(
            f"--input {name}: {path} has shape {array.shape}",
            f"%{name} is {arg.type}",
            "reshape it to fit",
        )
    return array


def _load(name: str, path: str) -> Values:
    try:
        with open(path, "rb") as file:
            loaded: object = np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        raise UserError(
            f"--input {name}: cannot read {path}", error.strerror, "check the path"
        ) from error
    except (ValueError, EOFError) as error:
        raise UserError(
            f"--input {name}: {path} is not a .npy file of numbers",
            str(error),
            "write it with numpy.save",
        ) from error
    assert isinstance(loaded, np.ndarray)
    # Files keep the byte order of the computer that wrote them.
    return np.ascontiguousarray(loaded, dtype=loaded.dtype.newbyteorder("=")).reshape(loaded.shape)


def _check_size_of_file(name: str, arg: BlockArgument, array: Values, sizes: Sizes) -> None:
    size = sizes.of.get(name, sizes.every)
    if size is None or not _is_dynamic(arg):
        return
    expected = tuple(size if n == DYNAMIC_INDEX else n for n in _dimensions(arg.type))
    if expected != array.shape:
        raise UserError(
            f"--size {size} and --input {name} contradict each other",
            f"the file has shape {array.shape}",
            "leave the size out",
        )
