"""Random pattern programs, for tests that compare a machine with the reference.

A program is a function of vectors and scalars with up to four patterns. Everything is drawn:
element types, bodies, sizes of windows and groups, shared operands, static or `?` lengths, and
which results are returned. Lengths are chosen so that groups divide them.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

INTEGERS = ("i8", "i16", "i32", "i64")
BINARY = ("addi", "subi", "muli", "andi", "ori", "xori", "minsi", "maxsi", "minui", "maxui")
DIVISIONS = ("divsi", "divui", "remsi", "remui", "shli", "shrsi", "shrui")
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
LENGTHS = (0, 1, 2, 3, 5, 7, 8, 9, 13, 16, 31, 63, 64, 65, 97, 127, 128, 240, 257, 509, 720, 1009)
DTYPES: dict[str, Any] = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f32": np.float32,
}
NUMBERS = (*INTEGERS, "f32")
FLOAT_BINARY = ("addf", "subf", "mulf", "divf", "maximumf", "minimumf")
FLOAT_PREDICATES = ("oeq", "one", "olt", "ole", "ogt", "oge", "ult", "uno")
FLOATS = ("0.0", "1.0", "-2.5", "0.1", "3.0e+10")
FLOAT_FOLDS = ("addf", "maximumf", "minimumf")


@dataclass
class Vector:
    """A vector of the program: its name, element type, and length (None: known at run time)."""

    name: str
    element: str
    length: int | None
    family: int

    def type(self, static: bool) -> str:
        size = self.length if static and self.length is not None else "?"
        return f"tensor<{size}x{self.element}>"


@dataclass
class Program:
    """The text of a program, with the types and lengths of its arguments."""

    text: str
    arguments: list[tuple[str, int | None]]
    kinds: list[str]

    def inputs(self, seed: int) -> dict[str, np.ndarray]:
        """Arguments over the whole range of their types; some with many equal values."""
        rng = np.random.default_rng(seed)
        values: dict[str, np.ndarray] = {}
        for index, (element, length) in enumerate(self.arguments):
            if element == "f32":
                scale = 10.0 ** rng.integers(-2, 4)
                drawn = rng.normal(0.0, scale, size=length)
                values[f"arg{index}"] = np.asarray(drawn).astype(np.float32)[()]
                continue
            info = np.iinfo(DTYPES[element]) if element != "i1" else None
            low, high = (0, 1) if info is None else (int(info.min), int(info.max))
            if rng.integers(3) == 0 and info is not None:
                low, high = -2, 3
            drawn = rng.integers(low, high, size=length, dtype=np.int64, endpoint=True)
            values[f"arg{index}"] = np.asarray(drawn).astype(DTYPES[element])[()]
        return values


@dataclass
class _Writer:
    """Lines of one region, and fresh names."""

    draw: st.DrawFn
    lines: list[str] = field(default_factory=list[str])
    counter: list[int] = field(default_factory=lambda: [0])

    def fresh(self) -> str:
        self.counter[0] += 1
        return f"%v{self.counter[0]}"

    def emit(self, text: str) -> str:
        name = self.fresh()
        self.lines.append(f"{name} = {text}")
        return name

    def nested(self) -> "_Writer":
        return _Writer(self.draw, [], self.counter)

    def constant(self, value: int, type: str) -> str:
        return self.emit(f"arith.constant {value} : {type}")


Scalar = tuple[str, str]


def _cast(out: _Writer, value: Scalar, type: str) -> str:
    name, have = value
    if have == type:
        return name
    if type == "f32":
        kind = "uitofp" if have == "i1" else out.draw(st.sampled_from(("sitofp", "uitofp")))
        return out.emit(f"arith.{kind} {name} : {have} to {type}")
    if have == "f32":
        kind = out.draw(st.sampled_from(("fptosi", "fptoui")))
        return out.emit(f"arith.{kind} {name} : {have} to {type}")
    widths = {t: int(t[1:]) for t in (have, type)}
    if widths[type] < widths[have]:
        return out.emit(f"arith.trunci {name} : {have} to {type}")
    kind = "extui" if have == "i1" else out.draw(st.sampled_from(("extsi", "extui")))
    return out.emit(f"arith.{kind} {name} : {have} to {type}")


def _expression(out: _Writer, values: list[Scalar], type: str, depth: int) -> str:
    """A random value of `type` made of `values`."""
    draw = out.draw
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        if draw(st.integers(0, 4)) == 0 and type == "f32":
            return out.emit(f"arith.constant {draw(st.sampled_from(FLOATS))} : f32")
        if draw(st.integers(0, 4)) == 0 and type != "f32":
            limit = 1 << (int(type[1:]) - 1)
            small = st.sampled_from((0, 1, 2, 3, 5, 8, 10, 64, 100, -1, -3))
            return out.constant(draw(small | st.integers(-limit, limit - 1)), type)
        return _cast(out, draw(st.sampled_from(values)), type)
    lhs = _expression(out, values, type, depth - 1)
    rhs = _expression(out, values, type, depth - 1)
    if type == "f32":
        return _float_operation(out, values, lhs, rhs)
    match draw(st.integers(0, 7)):
        case 0:
            predicate = draw(st.sampled_from(PREDICATES))
            condition = out.emit(f"arith.cmpi {predicate}, {lhs}, {rhs} : {type}")
            other = _cast(out, draw(st.sampled_from(values)), type)
            return out.emit(f"arith.select {condition}, {lhs}, {other} : {type}")
        case 1:
            kind = draw(st.sampled_from(DIVISIONS))
        case 2:
            return _branch(out, lhs, rhs, type)
        case _:
            kind = draw(st.sampled_from(BINARY))
    return out.emit(f"arith.{kind} {lhs}, {rhs} : {type}")


def _float_operation(out: _Writer, values: list[Scalar], lhs: str, rhs: str) -> str:
    if out.draw(st.integers(0, 4)) == 0:
        predicate = out.draw(st.sampled_from(FLOAT_PREDICATES))
        condition = out.emit(f"arith.cmpf {predicate}, {lhs}, {rhs} : f32")
        other = _cast(out, out.draw(st.sampled_from(values)), "f32")
        return out.emit(f"arith.select {condition}, {lhs}, {other} : f32")
    kind = out.draw(st.sampled_from(FLOAT_BINARY))
    return out.emit(f"arith.{kind} {lhs}, {rhs} : f32")


def _branch(out: _Writer, lhs: str, rhs: str, type: str) -> str:
    predicate = out.draw(st.sampled_from(PREDICATES))
    condition = out.emit(f"arith.cmpi {predicate}, {lhs}, {rhs} : {type}")
    name = out.fresh()
    kind = out.draw(st.sampled_from(BINARY))
    inner = out.fresh()
    out.lines += [
        f"{name} = scf.if {condition} -> ({type}) {{",
        f"{inner} = arith.{kind} {lhs}, {rhs} : {type}",
        f"scf.yield {inner} : {type}",
        "} else {",
        f"scf.yield {rhs} : {type}",
        "}",
    ]
    return name


def _condition(out: _Writer, values: list[Scalar]) -> str:
    type = out.draw(st.sampled_from(INTEGERS))
    lhs = _expression(out, values, type, 1)
    rhs = _expression(out, values, type, 1)
    return out.emit(f"arith.cmpi {out.draw(st.sampled_from(PREDICATES))}, {lhs}, {rhs} : {type}")


def _slice_values(out: _Writer, name: str, element: str, length: int) -> list[Scalar]:
    """Scalars made of a slice: some of its elements, perhaps a reduction over all of it."""
    type = f"tensor<{length}x{element}>"
    positions = st.lists(st.integers(0, length - 1), min_size=1, max_size=3, unique=True)
    values: list[Scalar] = []
    for position in out.draw(positions):
        index = out.constant(position, "index")
        values.append((out.emit(f"tensor.extract {name}[{index}] : {type}"), element))
    if element in INTEGERS and out.draw(st.booleans()):
        values.append((_nested_reduce(out, name, element, length), element))
    return values


def _nested_reduce(out: _Writer, name: str, element: str, length: int) -> str:
    kind = out.draw(st.sampled_from(("addi", "maxsi", "xori", "muli")))
    vector = name
    if out.draw(st.booleans()):
        x, y, vector = out.fresh(), out.fresh(), out.fresh()
        out.lines += [
            f"{vector} = pattern.map({x} in {name} : tensor<{length}x{element}>) "
            f"-> tensor<{length}x{element}> {{",
            f"{y} = arith.{out.draw(st.sampled_from(BINARY))} {x}, {x} : {element}",
            f"pattern.yield {y} : {element}",
            "}",
        ]
    zero = out.constant(out.draw(st.integers(0, 3)), element)
    x, acc, y, result = (out.fresh() for _ in range(4))
    out.lines += [
        f"{result} = pattern.reduce({x} in {vector} : tensor<{length}x{element}>) "
        f"init({acc} = {zero} : {element}) {{",
        f"{y} = arith.{kind} {acc}, {x} : {element}",
        f"pattern.yield {y} : {element}",
        "}",
    ]
    return result


def _fold_body(out: _Writer, kind: str, acc: list[str], x: list[str], type: str) -> list[str]:
    """An associative function; `affine` composes x -> a*x + b, and does not commute."""
    match kind:
        case "last":
            return x
        case "first":
            zero = out.constant(0, type)
            empty = out.emit(f"arith.cmpi eq, {acc[0]}, {zero} : {type}")
            return [out.emit(f"arith.select {empty}, {x[0]}, {acc[0]} : {type}")]
        case "affine":
            a = out.emit(f"arith.muli {acc[0]}, {x[0]} : {type}")
            scaled = out.emit(f"arith.muli {acc[1]}, {x[0]} : {type}")
            return [a, out.emit(f"arith.addi {scaled}, {x[1]} : {type}")]
        case _:
            return [out.emit(f"arith.{kind} {acc[0]}, {x[0]} : {type}")]


FOLDS = ("addi", "muli", "andi", "ori", "xori", "minsi", "maxsi", "minui", "maxui")
SPECIAL_FOLDS = ("last", "first", "affine")


class _Generator:
    """Draws one program."""

    def __init__(self, draw: st.DrawFn, max_patterns: int, floats: bool):
        self.draw = draw
        self.numbers = NUMBERS if floats else INTEGERS
        self.out = _Writer(draw)
        self.static = draw(st.booleans())
        self.vectors: list[Vector] = []
        self.scalars: list[Scalar] = []
        self.results: list[tuple[str, str]] = []
        self.kinds: list[str] = []
        self.families = 1
        self.arguments: list[tuple[str, int | None]] = []
        self.signature: list[str] = []
        length = draw(st.sampled_from(LENGTHS) | st.integers(0, 2500))
        for _ in range(draw(st.integers(1, 3))):
            element = draw(st.sampled_from((*self.numbers, "i1")))
            vector = Vector(f"%arg{len(self.arguments)}", element, length, 0)
            self.vectors.append(vector)
            self._argument(vector.name, vector.type(self.static), element, length)
        if draw(st.booleans()):
            element = draw(st.sampled_from(INTEGERS))
            self.scalars.append((f"%arg{len(self.arguments)}", element))
            self._argument(self.scalars[-1][0], element, element, None)
        for _ in range(draw(st.integers(1, max_patterns))):
            self._pattern()

    def _argument(self, name: str, type: str, element: str, length: int | None) -> None:
        self.arguments.append((element, length))
        self.signature.append(f"{name}: {type}")

    def program(self) -> Program:
        returned = self.draw(
            st.lists(st.sampled_from(self.results), min_size=1, max_size=4, unique=True)
        )
        if self.results[-1] not in returned:
            returned.append(self.results[-1])
        names = ", ".join(name for name, _ in returned)
        types = ", ".join(type for _, type in returned)
        text = "\n".join(
            [
                f"func.func @main({', '.join(self.signature)}) -> ({types}) {{",
                *self.out.lines,
                f"func.return {names} : {types}",
                "}",
            ]
        )
        return Program(text, self.arguments, self.kinds)

    # -- choosing --------------------------------------------------------------------------------

    def _inputs(self, elements: tuple[str, ...] | None = None, most: int = 2) -> list[Vector]:
        usable = [v for v in self.vectors if elements is None or v.element in elements]
        if not usable:
            return []
        first = self.draw(st.sampled_from(usable))
        same = [v for v in usable if v.family == first.family]
        more = self.draw(st.lists(st.sampled_from(same), max_size=most - 1))
        return [first, *more]

    def _shared(self, out: _Writer) -> tuple[str, list[Scalar]]:
        """A shared clause and the scalars that the body sees through it."""
        if self.scalars and self.draw(st.booleans()):
            name, type = self.draw(st.sampled_from(self.scalars))
            arg = out.fresh()
            return f" shared({arg} = {name} : {type})", [(arg, type)]
        return "", []

    def _new(self, element: str, length: int | None, family: int) -> Vector:
        vector = Vector(self.out.fresh(), element, length, family)
        self.vectors.append(vector)
        self.results.append((vector.name, vector.type(self.static)))
        return vector

    def _family(self) -> int:
        self.families += 1
        return self.families

    # -- patterns ----------------------------------------------------------------------------------

    def _pattern(self) -> None:
        kinds = [self._elementwise, self._fold, self._filter, self._elementwise, self._histogram]
        self.draw(st.sampled_from(kinds))()

    def _sizes(self, length: int | None) -> tuple[str, int, int]:
        """Suffix of the pattern's name, window and group."""
        kinds = ["", "", "window"]
        if length is not None and length > 0:
            kinds += ["group", "window_group"]
        kind = self.draw(st.sampled_from(kinds))
        window = self.draw(st.integers(1, 9)) if "window" in kind else 1
        if window > 1 and (length is None or window > length):
            window = 1 if length is None or length == 0 else min(window, length)
        if kind == "window" and (length is None or length < window):
            return "", 1, 1
        group = 1
        if "group" in kind:
            assert length is not None
            owned = length - window + 1
            group = self.draw(st.sampled_from([g for g in range(1, 25) if owned % g == 0]))
        return kind, window, group

    def _open(
        self, name: str, sizes: list[int], inputs: list[Vector], body: _Writer, slice_length: int
    ) -> tuple[str, list[Scalar], list[tuple[str, str]]]:
        """The head of a pattern, the body's scalars, and its slices with their element types."""
        args = [body.fresh() for _ in inputs]
        bound = ", ".join(
            f"{arg} in {v.name} : {v.type(self.static)}"
            for arg, v in zip(args, inputs, strict=True)
        )
        shared, values = self._shared(body)
        suffix = f"<{', '.join(map(str, sizes))}>" if sizes else ""
        slices: list[tuple[str, str]] = []
        for arg, vector in zip(args, inputs, strict=True):
            if sizes:
                slices.append((arg, vector.element))
                values += _slice_values(body, arg, vector.element, slice_length)
            else:
                values.append((arg, vector.element))
        return f"pattern.{name}{suffix}({bound}){shared}", values, slices

    def _close(self, head: str, body: _Writer) -> None:
        self.out.lines += [f"{head} {{", *body.lines, "}"]

    def _elementwise(self) -> None:
        inputs = self._inputs()
        length = inputs[0].length
        kind, window, group = self._sizes(length)
        sizes = [n for n, word in ((window, "window"), (group, "group")) if word in kind]
        body = self.out.nested()
        head, values, _ = self._open(kind or "map", sizes, inputs, body, group + window - 1)
        types = [
            self.draw(st.sampled_from(self.numbers)) for _ in range(self.draw(st.integers(1, 2)))
        ]
        yields = [_expression(body, values, type, 2) for type in types]
        body.lines.append(f"pattern.yield {', '.join(yields)} : {', '.join(types)}")
        owned = None if length is None else (length - window + 1) // group
        family = self._family() if kind else inputs[0].family
        outs = [self._new(type, owned, family) for type in types]
        result_types = ", ".join(out.type(self.static) for out in outs)
        names = ", ".join(out.name for out in outs)
        self._close(f"{names} = {head} -> ({result_types})", body)
        self.kinds.append(kind or "map")

    def _fold(self) -> None:
        floating = self.draw(st.integers(0, 5)) == 0
        kind = self.draw(st.sampled_from(FLOAT_FOLDS if floating else (*FOLDS, *SPECIAL_FOLDS)))
        inputs = self._inputs(("f32",) if floating else INTEGERS, 1)
        if not inputs:
            return self._elementwise()
        vector = inputs[0]
        element = vector.element
        count = 2 if kind == "affine" else 1
        others = [v for v in self.vectors if v.family == vector.family and v.element == element]
        inputs = [vector, *(self.draw(st.sampled_from(others)) for _ in range(count - 1))]
        if floating:
            inits = [self.out.emit(f"arith.constant {self.draw(st.sampled_from(FLOATS))} : f32")]
        else:
            inits = [self.out.constant(self.draw(st.integers(-3, 3)), element) for _ in inputs]
        body = self.out.nested()
        xs, accs = [body.fresh() for _ in inputs], [body.fresh() for _ in inputs]
        yields = _fold_body(body, kind, accs, xs, element)
        body.lines.append(f"pattern.yield {', '.join(yields)} : {', '.join([element] * count)}")
        scan = self.draw(st.booleans())
        flag = " exclusive " if scan and self.draw(st.booleans()) else ""
        bound = ", ".join(
            f"{x} in {v.name} : {v.type(self.static)}" for x, v in zip(xs, inputs, strict=True)
        )
        start = ", ".join(
            f"{acc} = {init} : {element}" for acc, init in zip(accs, inits, strict=True)
        )
        if scan:
            outs = [self._new(element, vector.length, vector.family).name for _ in inputs]
        else:
            outs = [self.out.fresh() for _ in inputs]
            self.results += [(out, element) for out in outs]
            self.scalars += [(out, element) for out in outs]
        if floating:
            # Only returned: what is computed from a reassociated sum has no bound of its own.
            self.vectors = [v for v in self.vectors if v.name not in outs]
            self.scalars = [scalar for scalar in self.scalars if scalar[0] not in outs]
        name = "scan" if scan else "reduce"
        self._close(f"{', '.join(outs)} = pattern.{name}{flag}({bound}) init({start})", body)
        self.kinds.append(f"{flag.strip()} {name}".strip())

    def _histogram(self) -> None:
        inputs = self._inputs(INTEGERS, 1)
        if not inputs:
            return self._elementwise()
        vector = inputs[0]
        bins = self.draw(st.sampled_from((1, 3, 8, 17, 64, 256)))
        element = self.draw(st.sampled_from(INTEGERS))
        table = f"tensor<{bins}x{element}>"
        start = self.out.emit(f"arith.constant dense<{self.draw(st.integers(0, 2))}> : {table}")
        body = self.out.nested()
        x, acc, left, right = (body.fresh() for _ in range(4))
        wide = _cast(body, (x, vector.element), "i64")
        number = body.emit(f"arith.remui {wide}, {body.constant(bins, 'i64')} : i64")
        index = body.emit(f"arith.index_cast {number} : i64 to index")
        old = body.emit(f"tensor.extract {acc}[{index}] : {table}")
        value = _expression(body, [(x, vector.element)], element, 1)
        kind = self.draw(st.sampled_from(("addi", "maxsi", "xori")))
        new = body.emit(f"arith.{kind} {old}, {value} : {element}")
        next_ = body.emit(f"tensor.insert {new} into {acc}[{index}] : {table}")
        result, joined = self.out.fresh(), self.out.fresh()
        body.lines += [
            f"pattern.yield {next_} : {table}",
            f"}} combine({left}, {right}) {{",
            f"{joined} = arith.{kind} {left}, {right} : {element}",
            f"pattern.yield {joined} : {element}",
        ]
        self._close(
            f"{result} = pattern.reduce({x} in {vector.name} : {vector.type(self.static)}) "
            f"init({acc} = {start} : {table})",
            body,
        )
        self.results.append((result, table))
        self.kinds.append("histogram")

    def _filter(self) -> None:
        inputs = self._inputs()
        kind, window, group = self._sizes(inputs[0].length)
        sizes = [n for n, word in ((window, "window"), (group, "group")) if word in kind]
        body = self.out.nested()
        name = f"{kind}_filter" if kind else "filter"
        head, values, slices = self._open(name, sizes, inputs, body, group + window - 1)
        keep = _condition(body, values)
        yields, types = [keep], ["i1"]
        family = self._family()
        outs: list[Vector] = []
        for _ in range(self.draw(st.integers(1, 2))):
            if slices and self.draw(st.booleans()):
                arg, element = self.draw(st.sampled_from(slices))
                yields.append(arg)
                types.append(f"tensor<{group + window - 1}x{element}>")
                outs.append(self._new(element, None, self._family()))
            else:
                element = self.draw(st.sampled_from(self.numbers))
                yields.append(_expression(body, values, element, 1))
                types.append(element)
                outs.append(self._new(element, None, family))
        body.lines.append(f"pattern.yield {', '.join(yields)} : {', '.join(types)}")
        count = self.out.fresh()
        self.results.append((count, "index"))
        names = ", ".join([*(out.name for out in outs), count])
        result_types = ", ".join([*(out.type(False) for out in outs), "index"])
        self._close(f"{names} = {head} -> ({result_types})", body)
        self.kinds.append(name)


@st.composite
def programs(draw: st.DrawFn, max_patterns: int = 4, floats: bool = True) -> Program:
    """Programs of one to `max_patterns` patterns, with or without f32."""
    return _Generator(draw, max_patterns, floats).program()
