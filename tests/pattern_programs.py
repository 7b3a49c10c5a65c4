"""Random pattern programs over i32, as text: what tests of rewrites compare before and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[int]], int]

OPERATIONS = ("addi", "subi", "muli", "maxsi", "minui", "xori", "andi", "divsi", "shrsi")
ASSOCIATIVE = ("addi", "muli", "maxsi", "minui", "xori")


@dataclass(frozen=True)
class Vector:
    """A vector of the program: its name, type, and the kind of length it has.

    Vectors of one `length_class` have one length; `length` is it where a type could tell.
    """

    name: str
    text: str
    length_class: str
    length: int | None


@dataclass
class Program:
    """A function under construction."""

    draw: Draw
    length: int
    vectors: list[Vector] = field(default_factory=list[Vector])
    scalars: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    lines: list[str] = field(default_factory=list[str])
    counter: int = 0

    def name(self) -> str:
        self.counter += 1
        return f"%v{self.counter}"

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def choose(self, options: tuple[str, ...] | list[str]) -> str:
        return options[self.number(0, len(options) - 1)]

    def vector_type(self, length: int | None) -> str:
        """`length` as a type, or now and then less than is known."""
        known = length is not None and self.number(0, 3) > 0
        return f"tensor<{length if known else '?'}xi32>"

    def inputs(self, most: int, only: str | None = None) -> list[Vector]:
        """Up to `most` vectors of one length, perhaps one of them twice."""
        pool = [v for v in self.vectors if only is None or v.length_class == only]
        first = pool[self.number(0, len(pool) - 1)]
        same = [v for v in pool if v.length_class == first.length_class]
        more = self.number(0, most - 1)
        return [first, *(same[self.number(0, len(same) - 1)] for _ in range(more))]

    def length_of(self, inputs: list[Vector]) -> int | None:
        return next((v.length for v in inputs if "?" not in v.text), None)

    # -- element functions -------------------------------------------------------------------------

    def expression(self, lines: list[str], values: list[str], steps: int) -> str:
        """Adds up to `steps` operations on `values` to `lines`; the value of the last."""
        for _ in range(self.number(0, steps)):
            new = self.name()
            if self.number(0, 4) == 0:
                lines.append(f"{new} = arith.constant {self.number(-5, 5)} : i32")
            else:
                lhs, rhs = self.choose(values), self.choose(values)
                lines.append(f"{new} = arith.{self.choose(OPERATIONS)} {lhs}, {rhs} : i32")
            values.append(new)
        return self.choose(values)

    def shared(self) -> tuple[str, list[str]]:
        """A `shared(...)` clause of scalars, perhaps one twice, and its arguments."""
        count = self.number(0, 2)
        if not count:
            return "", []
        names = [self.name() for _ in range(count)]
        bound = [f"{n} = {self.choose(['%k', '%c0', '%c1'])} : i32" for n in names]
        return f" shared({', '.join(bound)})", names

    def bindings(self, inputs: list[Vector]) -> tuple[str, list[str]]:
        names = [self.name() for _ in inputs]
        bound = [f"{n} in {v.name} : {v.text}" for n, v in zip(names, inputs, strict=True)]
        return f"({', '.join(bound)})", names

    def emit(self, head: str, body: list[str], tail: str = "") -> None:
        self.lines += [f"{head} {{", *(f"  {line}" for line in body), f"}}{tail}"]

    # -- patterns ----------------------------------------------------------------------------------

    def add_map(self) -> None:
        inputs = self.inputs(3)
        clause, args = self.bindings(inputs)
        shared, shared_args = self.shared()
        body = list[str]()
        values = [*args, *shared_args]
        count = self.number(1, 3)
        yielded = [self.expression(body, values, 3) for _ in range(count)]
        body.append(f"pattern.yield {', '.join(yielded)} : {', '.join(['i32'] * count)}")
        results = [
            Vector(
                self.name(),
                self.vector_type(self.length_of(inputs)),
                inputs[0].length_class,
                inputs[0].length,
            )
            for _ in range(count)
        ]
        names = ", ".join(v.name for v in results)
        types = ", ".join(v.text for v in results)
        self.emit(f"{names} = pattern.map{clause}{shared} -> ({types})", body)
        self.vectors += results

    def add_fold(self) -> None:
        inputs = self.inputs(2)
        clause, args = self.bindings(inputs)
        count = len(inputs)
        accs = [self.name() for _ in inputs]
        body, yielded, joined = list[str](), list[str](), list[str]()
        ops = [self.choose(ASSOCIATIVE) for _ in inputs]
        keeps_last = count == 1 and self.number(0, 5) == 0
        combines = not keeps_last and self.number(0, 2) == 0
        lefts, rights = [self.name() for _ in inputs], [self.name() for _ in inputs]
        for op, acc, arg, left, right in zip(ops, accs, args, lefts, rights, strict=True):
            value = self.expression(body, [arg, *(args if combines else [])], 2 * combines)
            yielded.append(self.name())
            body.append(f"{yielded[-1]} = arith.{op} {acc}, {value} : i32")
            joined.append(f"{left}j = arith.{op} {right}, {left} : i32")
        if keeps_last:
            yielded = list(args)
        types = ", ".join(["i32"] * count)
        body.append(f"pattern.yield {', '.join(yielded)} : {types}")
        tail = ""
        if combines:
            names = ", ".join(f"{left}j" for left in lefts)
            lines = "\n  ".join([*joined, f"pattern.yield {names} : {types}"])
            tail = f" combine({', '.join([*lefts, *rights])}) {{\n  {lines}\n}}"
        inits = ", ".join(f"{acc} = {self.choose(['%k', '%c0', '%c1'])} : i32" for acc in accs)
        results = [self.name() for _ in inputs]
        kind = self.choose(["pattern.reduce", "pattern.scan", "pattern.scan exclusive "])
        self.emit(f"{', '.join(results)} = {kind}{clause} init({inits})", body, tail)
        if kind == "pattern.reduce":
            self.scalars += [(name, "i32") for name in results]
            return
        length = self.length_of(inputs)
        text = f"tensor<{'?' if length is None else length}xi32>"
        self.vectors += [
            Vector(name, text, inputs[0].length_class, inputs[0].length) for name in results
        ]

    def add_filter(self) -> None:
        inputs = self.inputs(2)
        clause, args = self.bindings(inputs)
        shared, shared_args = self.shared()
        body = list[str]()
        values = [*args, *shared_args]
        first = self.expression(body, values, 2)
        keep = self.name()
        body.append(f"{keep} = arith.cmpi slt, {first}, {self.choose(values)} : i32")
        kept = [self.expression(body, values, 1) for _ in range(self.number(0, 2))]
        types = ", ".join(["i1", *(["i32"] * len(kept))])
        body.append(f"pattern.yield {', '.join([keep, *kept])} : {types}")
        length = self.name()
        results = [Vector(self.name(), "tensor<?xi32>", length, None) for _ in kept]
        names = ", ".join([*(v.name for v in results), length])
        out_types = ", ".join([*(v.text for v in results), "index"])
        self.emit(f"{names} = pattern.filter{clause}{shared} -> ({out_types})", body)
        self.vectors += results
        self.scalars.append((length, "index"))

    def add_slices(self) -> None:
        """A window or a group over vectors as long as the arguments."""
        inputs = self.inputs(2, "n")
        clause, args = self.bindings(inputs)
        kind = self.choose(["window", "group"])
        body, values = list[str](), list[str]()
        for arg in args:
            index, value = self.name(), self.name()
            body.append(f"{index} = arith.constant {self.number(0, 1)} : index")
            body.append(f"{value} = tensor.extract {arg}[{index}] : tensor<2xi32>")
            values.append(value)
        out = self.expression(body, values, 2)
        body.append(f"pattern.yield {out} : i32")
        length = self.length - 1 if kind == "window" else self.length // 2
        known = length if self.length_of(inputs) is not None else None
        result = Vector(self.name(), self.vector_type(known), kind, length)
        self.emit(f"{result.name} = pattern.{kind}<2>{clause} -> {result.text}", body)
        self.vectors.append(result)

    def add_group_filter(self) -> None:
        """Keeps groups of two, or something of them, of vectors as long as the arguments."""
        inputs = self.inputs(2, "n")
        clause, args = self.bindings(inputs)
        zero, first, keep = self.name(), self.name(), self.name()
        body = [
            f"{zero} = arith.constant 0 : index",
            f"{first} = tensor.extract {args[-1]}[{zero}] : tensor<2xi32>",
        ]
        value = self.expression(body, [first], 2)
        body.append(f"{keep} = arith.cmpi sle, {first}, {value} : i32")
        kept = [self.choose([*args, value]) for _ in range(self.number(0, 3))]
        types = ["tensor<2xi32>" if name in args else "i32" for name in kept]
        yields = ", ".join([f"{keep}", *kept])
        body.append(f"pattern.yield {yields} : {', '.join(['i1', *types])}")
        length, scalars = self.name(), self.name()
        results = [
            Vector(self.name(), "tensor<?xi32>", length if name in args else scalars, None)
            for name in kept
        ]
        names = ", ".join([*(v.name for v in results), length])
        out_types = ", ".join([*(v.text for v in results), "index"])
        self.emit(f"{names} = pattern.group_filter<2>{clause} -> ({out_types})", body)
        self.vectors += results
        self.scalars.append((length, "index"))


@st.composite
def programs(draw: Draw, most: int = 6) -> tuple[str, int, int]:
    """A module's text, how many vectors @main takes, and how long they are.

    `@main` takes the vectors and an i32, and returns some of what it computes.
    """
    program = Program(draw, length=2 * draw(st.integers(1, 12)))
    arguments = draw(st.integers(1, 3))
    for index in range(arguments):
        text = program.vector_type(program.length)
        program.vectors.append(Vector(f"%a{index}", text, "n", program.length))
    adders = (
        program.add_map,
        program.add_map,
        program.add_map,
        program.add_fold,
        program.add_fold,
        program.add_filter,
        program.add_slices,
        program.add_group_filter,
    )
    for _ in range(draw(st.integers(1, most))):
        adders[draw(st.integers(0, len(adders) - 1))]()
    computed = [(v.name, v.text) for v in program.vectors[arguments:]] + program.scalars
    picks = [draw(st.integers(0, 2)) == 0 for _ in computed]
    returned = [pair for pair, pick in zip(computed, picks, strict=True) if pick]
    returned = returned or computed[-1:]
    formal = ", ".join(f"{v.name}: {v.text}" for v in program.vectors[:arguments])
    types = ", ".join(text for _, text in returned)
    lines = [
        f"func.func @main({formal}, %k: i32) -> ({types}) {{",
        "  %c0 = arith.constant 0 : i32",
        "  %c1 = arith.constant 7 : i32",
        *(f"  {line}" for line in program.lines),
        f"  func.return {', '.join(name for name, _ in returned)} : {types}",
        "}",
    ]
    return "\n".join(lines), arguments, program.length
