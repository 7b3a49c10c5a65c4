"""One program for every pattern operation and element type: bodies as plain as they can be."""

from __future__ import annotations

ELEMENTS = ("i1", "i8", "i16", "i32", "i64", "f32")
OPERATIONS = (
    "map",
    "reduce",
    "scan",
    "filter",
    "window",
    "group",
    "window_group",
    "window_filter",
    "group_filter",
    "window_group_filter",
)
WINDOW, GROUP = 3, 4


def owners(operation: str, length: int) -> int:
    """How often the element function runs."""
    if "window" in operation:
        length = max(length - WINDOW + 1, 0)
    return length // GROUP if "group" in operation else length


def usable(operation: str, length: int, static: bool) -> bool:
    """True when the operation takes a vector of that length."""
    if static and "window" in operation and length < WINDOW:
        return False
    rest = max(length - WINDOW + 1, 0) if "window" in operation else length
    return "group" not in operation or rest % GROUP == 0


def program(operation: str, element: str, length: int | None) -> str:
    """@main with one vector of `length` elements (None: `?`) and one pattern."""
    size = "?" if length is None else str(length)
    source = f"tensor<{size}x{element}>"
    result, body = _pattern(operation, element, length, source)
    names = ", ".join(f"%r{index}" for index in range(len(result)))
    types = ", ".join(result)
    return "\n".join(
        [
            f"func.func @main(%a: {source}) -> ({types}) {{",
            f"  {_constant('%one', 1, element)}",
            f"  {names} = {body}",
            f"  func.return {names} : {types}",
            "}",
        ]
    )


def _pattern(
    operation: str, element: str, length: int | None, source: str
) -> tuple[list[str], str]:
    size = "?" if length is None else str(owners(operation, length))
    if operation == "map":
        out = f"tensor<{size}x{element}>"
        return [out], f"pattern.map(%x in %a : {source}) -> {out} {{\n{_double(element)}\n}}"
    if operation in ("reduce", "scan"):
        out = element if operation == "reduce" else source
        body = f"  %s = {_add(element)} %acc, %x : {element}\n  pattern.yield %s : {element}"
        head = f"pattern.{operation}(%x in %a : {source}) init(%acc = %one : {element})"
        return [out], f"{head} {{\n{body}\n}}"
    sizes = [WINDOW] * ("window" in operation) + [GROUP] * ("group" in operation)
    slice_length = (GROUP if "group" in operation else 1) + (
        WINDOW - 1 if "window" in operation else 0
    )
    suffix = f"<{', '.join(map(str, sizes))}>" if sizes else ""
    view = f"tensor<{slice_length}x{element}>"
    lines: list[str] = []
    value = "%x"
    if sizes:
        lines += [
            "  %first = arith.constant 0 : index",
            f"  %last = arith.constant {slice_length - 1} : index",
            f"  %p = tensor.extract %x[%first] : {view}",
            f"  %q = tensor.extract %x[%last] : {view}",
        ]
        value = "%p"
    head = f"pattern.{operation}{suffix}(%x in %a : {source})"
    if "filter" not in operation:
        lines += [f"  %s = {_add(element)} %p, %q : {element}", f"  pattern.yield %s : {element}"]
        out = f"tensor<{size}x{element}>"
        return [out], "\n".join([f"{head} -> {out} {{", *lines, "}"])
    lines += _condition(value, element)
    lines.append(f"  pattern.yield %keep, %x : i1, {view if sizes else element}")
    types = [f"tensor<?x{element}>", "index"]
    return types, "\n".join([f"{head} -> ({', '.join(types)}) {{", *lines, "}"])


def _constant(name: str, value: int, element: str) -> str:
    text = f"{value}.0" if element == "f32" else str(value)
    return f"{name} = arith.constant {text} : {element}"


def _add(element: str) -> str:
    return "arith.addf" if element == "f32" else "arith.addi"


def _double(element: str) -> str:
    return f"  %s = {_add(element)} %x, %x : {element}\n  pattern.yield %s : {element}"


def _condition(value: str, element: str) -> list[str]:
    kind = "cmpf ogt" if element == "f32" else "cmpi slt" if element == "i1" else "cmpi sgt"
    zero = "%zero"
    return [
        f"  {_constant(zero, 0, element)}",
        f"  %keep = arith.{kind}, {value}, {zero} : {element}",
    ]
