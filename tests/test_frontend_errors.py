"""What cannot be traced: every message, its remedy, and the line of the user's file."""

# Element functions are written without types, as users write them.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cim_opt.errors import UserError
from cim_opt.frontend import Pipeline, maximum, sqrt, where

X = np.arange(8, dtype=np.int32)
U = np.arange(8, dtype=np.uint32)
F = np.arange(8, dtype=np.float32)
B = X > 3
TWO: Any = 2.0
TABLE = np.arange(16, dtype=np.int32)


def refuses(text: str, build: Callable[[], Any]) -> UserError:
    """Runs `build`, expects a UserError with `text` in this file, and gives it back."""
    with pytest.raises(UserError, match=re.escape(text)) as caught:
        build()
    error = caught.value
    assert error.location is not None
    assert error.location[0] == __file__
    assert "\n" not in str(error)
    return error


def mapping(f: Any, *inputs: Any, **options: Any) -> Callable[[], Any]:
    return lambda: Pipeline().map(f, *(inputs or (X,)), **options)


def grouping(f: Any) -> Callable[[], Any]:
    return lambda: Pipeline().group(f, X, size=4)


# What, the remedy in it, and the stage that gives it.
IN_FUNCTIONS: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "if": ("a Python decision", "where(condition, a, b)", mapping(lambda x: 1 if x > 0 else 0)),
    "and": ("a Python decision", "&, | and ~", mapping(lambda x: x > 0 and x < 5)),
    "or": ("a Python decision", "&, | and ~", mapping(lambda x: x > 0 or x < 5)),
    "not": ("a Python decision", "&, | and ~", mapping(lambda x: not x)),
    "chain": ("a Python decision", "&, | and ~", mapping(lambda x: 0 < x < 5)),
    "min": ("a Python decision", "minimum", mapping(lambda x: min(x, x + 1))),
    "in": ("a Python decision", "where", mapping(lambda x: x in (1, 2))),
    "slice as bool": ("a Python decision", "where", grouping(lambda g: g[0] if g else g[1])),
    "int": ("int(...) of a traced", "astype(np.int32)", mapping(lambda x: int(x))),
    "float": ("float(...)", "astype(np.float32)", mapping(lambda x: float(x))),
    "math": ("a function of module math", "sqrt(x)", mapping(lambda x: math.sqrt(x), F)),
    "complex": ("complex(...)", "float32", mapping(lambda x: complex(x))),
    "round": ("round(...)", "floor(x + 0.5)", mapping(lambda x: round(x), F)),
    "range": ("an index of a Python list", "shared=", mapping(lambda x: sum(range(x)))),
    "list": ("an index of a Python list", "shared=", mapping(lambda x: [1, 2][x])),
    "array": ("an index of a NumPy array", "shared=", mapping(lambda x: TABLE[x])),
    "asarray": ("or an array made, of a", "shared=", mapping(lambda x: np.asarray(x))),
    "iterate": ("iteration over a traced scalar", "p.window", mapping(lambda x: list(x))),
    "index": ("indexing of a traced scalar", "p.group", mapping(lambda x: x[0])),
    "attribute": (
        "a traced scalar has no .astyp",
        "did you mean .astype",
        mapping(lambda x: x.astyp),
    ),
    "method": ("a traced scalar has no .sum", "it has ", mapping(lambda x: x.sum())),
    "slice method": ("a traced slice has no .mean", "it has ", grouping(lambda g: g.mean())),
    "ufunc": ("np.sin is called", "use operators", mapping(lambda x: np.sin(x), F)),
    "ufunc method": (
        "np.add.reduce is called",
        "use operators",
        grouping(lambda g: np.add.reduce(g)),
    ),
    "ufunc keyword": (
        "np.add with keywords",
        "use operators",
        mapping(lambda x: np.add(x, x, dtype=int)),
    ),
    "function": ("np.sort is called", "use operators", grouping(lambda g: np.sort(g)[0])),
    "function arguments": ("np.sum with these", "operators", grouping(lambda g: np.sum(g, axis=0))),
    "fold of scalar": ("np.sum of a scalar is called", "operators", mapping(lambda x: np.sum(x))),
    "mixed types": ("int32 + uint32", "astype(np.uint32)", mapping(lambda x, u: x + u, X, U)),
    "mixed compare": ("int32 < uint32", "cast one", mapping(lambda x, u: x < u, X, U)),
    "mixed constant": ("int32 * int64", "cast one", mapping(lambda x: x * np.int64(3))),
    "mixed where": (
        "int32 where uint32",
        "cast one",
        mapping(lambda x, u: where(x > 0, x, u), X, U),
    ),
    "large constant": (
        "the constant 256 does not fit uint8; uint8 holds 0 to 255",
        "wider type",
        mapping(lambda x: x + 256, X.astype(np.uint8)),
    ),
    "negative constant": ("-1 does not fit uint32", "wider type", mapping(lambda u: u - (-1), U)),
    "bool constant": ("2 does not fit bool", "wider type", mapping(lambda b: b & 2, B)),
    "huge float": ("does not fit float32", "3.4e38", mapping(lambda f: f * 1e60, F)),
    "float constant": ("0.5 is a float", "np.float32", mapping(lambda x: x * 0.5)),
    "float64 constant": (
        "float64 is not an element",
        "np.float32",
        mapping(lambda f: f * np.pi * np.float64(1), F),
    ),
    "true division": ("/ of int32", "use //", mapping(lambda x: x / 2)),
    "float floor division": ("// of float32", "floor(a / b)", mapping(lambda f: f // 2, F)),
    "float modulo": ("% of float32", "floor(a / b)", mapping(lambda f: f % 2, F)),
    "float shift": (">> of float32", "cast", mapping(lambda f: f >> 1, F)),
    "float not": ("~ of float32", "cast", mapping(lambda f: ~f, F)),
    "bool sum": ("+ of bool", "&, |, ^ and ~", mapping(lambda b: b + b, B)),
    "bool negative": ("- of bool", "&, |, ^ and ~", mapping(lambda b: -b, B)),
    "bool power": ("** of bool", "&, |, ^ and ~", mapping(lambda b: b**2, B)),
    "sqrt of integers": ("sqrt of int32", "np.float32", mapping(lambda x: sqrt(x))),
    "floor of integers": ("floor of int32", "leave it out", mapping(lambda x: np.floor(x))),
    "division by zero": ("// by the constant 0", "all elements", mapping(lambda x: x // 0)),
    "modulo zero": ("% by the constant 0", "all elements", mapping(lambda x: x % 0)),
    "float power": ("float32 ** 3", "multiply it out", mapping(lambda f: f**3, F)),
    "negative power": ("int32 ** -1", "whole number", mapping(lambda x: x**-1)),
    "fractional power": ("exponent of type float", "multiply", mapping(lambda f: f**0.5, F)),
    "traced power": ("exponent of type Scalar", "multiply", mapping(lambda x: 2**x)),
    "text": ("a value of type str", "number", mapping(lambda x: x + "1")),
    "None": ("a value of type NoneType", "number", mapping(lambda x: x == None)),  # noqa: E711
    "where of numbers": (
        "where of Python numbers only",
        "np.int32(1)",
        mapping(lambda x: where(x > 0, 1, 0)),
    ),
    "where of no bool": (
        "the condition of where is int32",
        "x != 0",
        mapping(lambda x: where(x, x, x)),
    ),
    "cast to float64": (
        "float64 is not an element",
        "np.float32",
        mapping(lambda x: x.astype(float)),
    ),
    "cast to nothing": ("'i33' is not an element", "int64", mapping(lambda x: x.astype("i33"))),
    "cast to complex": (
        "complex64 is not an",
        "two float32",
        mapping(lambda x: x.astype("complex64")),
    ),
    "outside": ("the index 4 is outside", "larger", grouping(lambda g: g[4])),
    "float index": ("an index of type float", "astype(np.int32)", grouping(lambda g: g[1.0])),
    "bool index": ("an index of type bool", "astype(np.int32)", grouping(lambda g: g[g[0] > 1])),
    "empty part": ("an empty part", "4 elements", grouping(lambda g: g[2:2].sum())),
    "lengths": ("slices of 3 and 4 elements", "s[:4]", grouping(lambda g: (g + g[1:])[0])),
    "set to a slice": ("is set to a slice", "one number", grouping(lambda g: g.set_at(0, g)[0])),
    "set to another type": (
        "a uint8 where a int32",
        "cast",
        grouping(lambda g: g.set_at(0, np.uint8(1))[0]),
    ),
    "map of a scalar": (
        "gets a Scalar",
        "by their names",
        grouping(lambda g: g.map(maximum, g[0])[0]),
    ),
    "nested group size": (
        "size 3 does not divide the 4",
        "pad",
        grouping(lambda g: g.group(max, size=3)),
    ),
    "nested window size": (
        "size 5 is larger than the 4",
        "pad",
        grouping(lambda g: g.window(max, size=5)),
    ),
    "nested result": ("returns nothing", "return", grouping(lambda g: g.map(lambda x: None)[0])),
}


@pytest.mark.parametrize("name", IN_FUNCTIONS)
def test_in_functions(name: str) -> None:
    what, remedy, build = IN_FUNCTIONS[name]
    assert remedy in refuses(what, build).message()


def test_the_line_is_the_users() -> None:
    def f(x: Any) -> Any:
        y = x + 1
        if y > 2:  # the line
            return y
        return x

    error = refuses("a Python decision", mapping(f))
    assert error.location is not None
    assert error.location[1] == f.__code__.co_firstlineno + 2
    assert str(error).startswith(f"{__file__}:{error.location[1]}:12: error: ")


def test_hasattr_is_an_answer() -> None:
    def f(x: Any) -> Any:
        assert not hasattr(x, "shape")
        return x

    Pipeline().map(f, X)


# What a function returns, and how it is called.
RESULTS: dict[str, tuple[str, Callable[[], Any]]] = {
    "nothing": ("the element function returns nothing", mapping(lambda x: None)),
    "number": ("returns the Python number 3", mapping(lambda x: 3)),
    "text": ("returns a str", mapping(lambda x: "a")),
    "slice": ("returns a slice of 4 elements", grouping(lambda g: g + 1)),
    "arguments": ("takes 1 arguments, but gets 2", mapping(lambda x: x, X, X)),
    "no function": ("the element function is a int", mapping(3)),
    "no condition": (
        "returns <traced int32> as its condition",
        lambda: Pipeline().filter(lambda x: x, X),
    ),
    "kept slice": (
        "keeps a computed slice",
        lambda: Pipeline().filter(lambda g: (g[0] > 1, g + 1), X, group=4),
    ),
    "accumulators": (
        "returns 2 values for 1 accumulators",
        lambda: Pipeline().reduce(lambda a, x: (a, x), X, init=0),
    ),
    "accumulator type": (
        "returns bool for an accumulator of int32",
        lambda: Pipeline().reduce(lambda a, x: a > x, X, init=0),
    ),
    "bins": (
        "returns int32 for an accumulator of int32 x 4",
        lambda: Pipeline().reduce(lambda a, x: x, X, init=np.zeros(4, np.int32), combine=maximum),
    ),
    "combine is missing": (
        "add combine=",
        lambda: Pipeline().reduce(lambda a, x: a + x.astype("i64"), X, init=np.int64(0)),
    ),
    "combine returns": (
        "the combine function returns 2 values for 1 accumulators",
        lambda: Pipeline().reduce(lambda a, x: a + x, X, init=0, combine=lambda a, b: (a, b)),
    ),
    "combine sees": (
        "the combine function uses a value from outside",
        lambda: combine_sees(Pipeline()),
    ),
    "init is missing": (
        "init= is missing; it can be left out when",
        lambda: Pipeline().reduce(lambda a, x: a + x * x, X),
    ),
    "init of unknown type": (
        "the type of init=0 is not known",
        lambda: Pipeline().reduce(lambda a, b, c, x, u: (a, b, c), X, U, init=(0, 0, 0)),
    ),
    "init is a list of text": (
        "init= is str",
        lambda: Pipeline().reduce(lambda a, x: a, X, init="0"),
    ),
    "init of two dimensions": (
        "init= is a 2-D array",
        lambda: Pipeline().reduce(lambda a, x: a, X, init=np.zeros((2, 2), np.int32)),
    ),
    "init outside": (
        "-1 does not fit uint32",
        lambda: Pipeline().reduce(lambda a, x: a + x, U, init=-1),
    ),
}


def combine_sees(p: Pipeline) -> Any:
    total = p.reduce(lambda a, x: a + x, X)
    return p.reduce(lambda a, x: a + x, X, init=0, combine=lambda a, b: a + b + total)


@pytest.mark.parametrize("name", RESULTS)
def test_results(name: str) -> None:
    what, build = RESULTS[name]
    refuses(what, build)


# Inputs, sizes, fetch and execute.
STAGES: dict[str, tuple[str, Callable[[], Any]]] = {
    "length": (
        "in a pipeline of 10; this length must be the same across all stages",
        lambda: Pipeline(10).map(abs, X),
    ),
    "lengths": (
        "an array of 4 elements in a pipeline of 8; this length must be the same",
        lambda: Pipeline().map(lambda x, y: x, X, X[:4]),
    ),
    "stage lengths": (
        "inputs of lengths 7 and 8 in one stage; this length must be the same",
        lambda: windowed_and_whole(Pipeline()),
    ),
    "filter lengths": (
        "inputs of lengths ? and 8 in one stage",
        lambda: kept_and_whole(Pipeline()),
    ),
    "pipeline length": ("the length of the pipeline is -1", lambda: Pipeline(-1)),
    "pipeline length type": ("the length of the pipeline is 1.5", lambda: Pipeline(1.5)),
    "pipeline name": ("the pipeline's name is 'a b'", lambda: Pipeline(name="a b")),
    "no input": ("a stage without an input", lambda: Pipeline().map(abs)),
    "only numbers": ("a stage without an input", lambda: Pipeline().map(abs, np.int32(1))),
    "list input": ("an input of type list", mapping(abs, [1, 2])),
    "number input": ("an input of type int", mapping(lambda x, k: x, X, 3)),
    "two dimensions": ("an array of 2 dimensions; inputs have one", mapping(abs, X.reshape(2, 4))),
    "float64": ("float64 is not an element type", mapping(abs, X.astype(np.float64))),
    "float16": ("float16 is not an element type", mapping(abs, X.astype(np.float16))),
    "complex": ("complex128 is not an element type", mapping(abs, X.astype(complex))),
    "objects": ("object is not an element type", mapping(abs, X.astype(object))),
    "shared number": ("a shared operand of type int", mapping(lambda x, k: x, X, shared=3)),
    "shared matrix": (
        "an array of 2 dimensions",
        mapping(lambda x, k: x, X, shared=X.reshape(2, 4)),
    ),
    "shared vector": (
        "a shared vector of unknown length",
        lambda: shares_its_own(Pipeline()),
    ),
    "vector by name": (
        "a vector of unknown length is used inside a function",
        lambda: names_its_own(Pipeline()),
    ),
    "window size": ("the window size is 0", lambda: Pipeline().window(lambda w: w[0], X, size=0)),
    "window type": ("the window size is 2.0", lambda: Pipeline().window(abs, X, size=TWO)),
    "window": (
        "the window size 9 is larger than the 8 elements",
        lambda: Pipeline(8).window(lambda w: w[0], X, size=9),
    ),
    "group": (
        "the group size 3 does not divide the 8 elements; groups are of one size; pad the input",
        lambda: Pipeline().group(lambda g: g[0], X, size=3),
    ),
    "group and window": (
        "the group size 4 does not divide the 8 elements less 1 for the window",
        lambda: Pipeline().group(lambda g: g[0], X, size=4, window=2),
    ),
    "vector operator": ("an operation on vectors outside a stage", lambda: mapped() + 1),
    "vector index": ("indexing of a vector outside a stage", lambda: mapped()[0]),
    "long part": ("the part [2:9] of a vector of 8 elements", lambda: mapped()[2:9]),
    "part with a step": ("the part [::2] of a vector of 8 elements", lambda: mapped()[::2]),
    "part from the end": ("the part [-1:] of a vector of 8 elements", lambda: mapped()[-1:]),
    "vector loop": ("iteration of a vector outside a stage", lambda: list(mapped())),
    "vector decision": ("a Python decision", lambda: bool(mapped())),
    "vector attribute": ("a traced vector has no .shape", lambda: mapped().shape),
    "length of a filter": (
        "the length of this vector is not known",
        lambda: len(Pipeline().filter(lambda x: x > 3, X)),
    ),
    "count of a map": ("the count of a vector that is not a filter's", lambda: mapped().count),
    "fetch": ("fetch of a ndarray", lambda: Pipeline().fetch(X)),
    "fetch of another": ("values of two pipelines", lambda: Pipeline().fetch(mapped())),
    "input of another": ("values of two pipelines", mapping(abs, Pipeline().input(X, "x"))),
    "shared of another": (
        "values of two pipelines",
        mapping(lambda x, k: x, X, shared=Pipeline(8).input(X, "x")),
    ),
    "named value of another": ("values of two pipelines", lambda: names_another()),
    "leak": ("a value is used after the function that it belongs to has ended", lambda: leaks()),
    "outer slice": ("an element of a slice from outside the function is set", lambda: sets_outer()),
    "nothing fetched": ("the pipeline fetches nothing", lambda: Pipeline().execute("reference")),
    "unknown result": ("this value was not fetched", lambda: executed()[mapped()]),
    "unknown position": ("there is no result 1", lambda: executed()[1]),
    "level of another target": (
        "level='rows' for target upmem; only simdram has it; leave it out, or choose",
        lambda: executed("upmem", level="rows"),
    ),
    "limit of another target": (
        "activation_limit=False for target reference; only simdram has it",
        lambda: executed(activation_limit=False),
    ),
    "transfer of another target": (
        "transfer='linear' for target simdram; only upmem has it",
        lambda: executed("simdram", transfer="linear"),
    ),
    "library in the options": (
        "the options of the lowering name a library",
        lambda: executed("simdram", options={"library": "simdram"}),
    ),
    "unnamed": ("an input without data has no name", lambda: Pipeline().input(np.int32)),
    "name twice": ("an input's name is not an identifier, or used", lambda: named("a", "a")),
    "bad name": ("an input's name is not an identifier, or used", lambda: named("a", "b c")),
    "no data": ("the input a has no data", lambda: declared({})),
    "no such input": ("there is no declared input 'b'", lambda: declared({"a": X, "b": X})),
    "data of another type": ("the input a is not an array of int32", lambda: declared({"a": U})),
    "data that is no array": ("the input a is not an array of int32", lambda: declared({"a": [1]})),
    "long loop": ("a Python loop over 300 elements; it is written out", lambda: loops(300)),
}


def mapped() -> Any:
    return Pipeline().map(lambda x: x + 1, X)


def windowed_and_whole(p: Pipeline) -> Any:
    x = p.input(X)
    return p.map(lambda a, b: a + b, p.window(lambda w: w[0], x, size=2), x)


def kept_and_whole(p: Pipeline) -> Any:
    x = p.input(X)
    return p.map(lambda a, b: a + b, p.filter(lambda x: x > 3, x), x)


def shares_its_own(p: Pipeline) -> Any:
    return p.map(lambda x, y: x, X, shared=p.map(abs, X))


def names_its_own(p: Pipeline) -> Any:
    y = p.map(abs, X)
    return p.map(lambda x: y[x], X)


def names_another() -> Any:
    k = Pipeline().reduce(lambda a, x: a + x, X)
    return Pipeline().map(lambda x: x + k, X)


def leaks() -> Any:
    p, seen = Pipeline(), list[Any]()
    p.map(lambda x: (seen.append(x), x)[1], X)
    return p.map(lambda x: x + seen[0], X)


def sets_outer() -> Any:
    def f(g: Any) -> Any:
        def inner(x: Any) -> Any:
            g[0] = x
            return x

        return g.map(inner)[0]

    return Pipeline().group(f, X, size=4)


def executed(target: str = "reference", **how: Any) -> Any:
    p = Pipeline()
    p.fetch(p.map(lambda x: x, X))
    return p.execute(target, **how)


def named(first: str, second: str) -> Any:
    p = Pipeline()
    p.input(np.int32, first)
    return p.input(np.int32, second)


def declared(inputs: Any) -> Any:
    p = Pipeline()
    p.fetch(p.map(abs, p.input(np.int32, "a")))
    return p.execute("reference", inputs=inputs)


def loops(n: int) -> Any:
    return Pipeline().group(lambda g: sum(g), np.zeros(n, np.int32), size=n)


@pytest.mark.parametrize("name", STAGES)
def test_stages(name: str) -> None:
    what, build = STAGES[name]
    refuses(what, build)


def test_declared_inputs_agree_in_length() -> None:
    p = Pipeline()
    p.fetch(p.map(lambda a, b: a + b, p.input("i32", "a"), p.input("i32", "b")))
    with pytest.raises(UserError, match=r"inputs of different lengths \(a: 8, b: 4\)"):
        p.execute("reference", inputs={"a": X, "b": X[:4]})


def test_the_users_own_exceptions_pass() -> None:
    def f(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Pipeline().map(f, X)
