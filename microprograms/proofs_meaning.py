"""What each operation means, as a z3 bit-vector term of its operands' values.

Division by zero gives 0, its remainder is the dividend; the least number divided by -1 is itself.
Shifts by the width and more give 0, or the sign everywhere for `shr_s`.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

Term = Any  # a z3 bit-vector; z3 has no types and is imported late
Words = Mapping[str, Term]
Options = Mapping[str, int | bool | None]


def load_z3() -> Any:
    """The module z3, imported at the first use; without types, for it has no usable ones."""
    return import_module("z3")


def bit_term(condition: Any) -> Term:
    """One bit that is 1 where the condition holds."""
    z3 = load_z3()
    return z3.If(condition, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))


def resized(term: Term, width: int, signed: bool = False) -> Term:
    """The low bits of a word, or the word extended with zeros or its sign."""
    z3 = load_z3()
    if term.size() > width:
        return z3.Extract(width - 1, 0, term)
    if term.size() == width:
        return term
    return (z3.SignExt if signed else z3.ZeroExt)(width - term.size(), term)


def divided(a: Term, b: Term, signed: bool) -> tuple[Term, Term]:
    """Quotient and remainder."""
    z3 = load_z3()
    zero = z3.BitVecVal(0, a.size())
    quotient = a / b if signed else z3.UDiv(a, b)
    remainder = z3.SRem(a, b) if signed else z3.URem(a, b)
    return z3.If(b == 0, zero, quotient), z3.If(b == 0, a, remainder)


def meaning(operation: str, width: int, options: Options, words: Words) -> Term:
    """The value of the output; `words` has the operands by name, each as wide as it is."""
    kind, _, order = operation.partition("_")
    for table in (_LOGIC, _ARITHMETIC):
        if operation in table:
            return table[operation](width, options, words)
    if kind in _COMPARISONS:
        return bit_term(_COMPARISONS[kind](words["a"], words["b"], order == "s"))
    if kind in ("min", "max"):
        return _extreme(kind, words["a"], words["b"], order == "s")
    if kind in ("shl", "shr"):
        return _shifted(kind, width, options, words, order)
    if kind in ("div", "rem"):
        quotient, remainder = divided(words["a"], words["b"], order == "s")
        return quotient if kind == "div" else remainder
    raise KeyError(operation)


def _wide(width: int, options: Options, words: Words, name: str, option: str = "signed") -> Term:
    return resized(words[name], width, bool(options.get(option)))


def _copy(width: int, options: Options, words: Words) -> Term:
    return _wide(width, options, words, "a")


def _fill(width: int, options: Options, _words: Words) -> Term:
    z3 = load_z3()
    return z3.BitVecVal(int(options["value"] or 0), width)


def _bits(word: Term) -> list[Term]:
    z3 = load_z3()
    return [z3.Extract(i, i, word) for i in range(word.size())]


def _parity(_width: int, _options: Options, words: Words) -> Term:
    total, *rest = _bits(words["a"])
    for bit in rest:
        total = total ^ bit
    return total


def _ones(width: int, options: Options, words: Words) -> Term:
    size = int(options.get("out_width") or width.bit_length())
    total, *rest = (resized(bit, size) for bit in _bits(words["a"]))
    for bit in rest:
        total = total + bit
    return total


def _if(condition: Any, then: Term, other: Term) -> Term:
    z3 = load_z3()
    return z3.If(condition, then, other)


Meaning = Callable[[int, Options, Words], Term]

_LOGIC: dict[str, Meaning] = {
    "copy": _copy,
    "fill": _fill,
    "not": lambda _n, _o, w: ~w["a"],
    "and": lambda _n, _o, w: w["a"] & w["b"],
    "or": lambda _n, _o, w: w["a"] | w["b"],
    "xor": lambda _n, _o, w: w["a"] ^ w["b"],
    "mask": lambda _n, _o, w: _if(w["choice"] == 1, w["a"], w["a"] ^ w["a"]),
    "select": lambda _n, _o, w: _if(w["choice"] == 1, w["a"], w["b"]),
    "reduce_and": lambda _n, _o, w: bit_term(~w["a"] == 0),
    "reduce_or": lambda _n, _o, w: bit_term(w["a"] != 0),
    "reduce_xor": _parity,
    "bitcount": _ones,
    "nonnegative": lambda _n, _o, w: bit_term(w["a"] >= 0),
    "negative": lambda _n, _o, w: bit_term(w["a"] < 0),
    "positive": lambda _n, _o, w: bit_term(w["a"] > 0),
}

_ARITHMETIC: dict[str, Meaning] = {
    "add": lambda n, o, w: w["a"] + _wide(n, o, w, "b", "b_signed"),
    "sub": lambda n, o, w: w["a"] - _wide(n, o, w, "b", "b_signed"),
    "neg": lambda _n, _o, w: -w["a"],
    "negate_if": lambda _n, _o, w: _if(w["choice"] == 1, -w["a"], w["a"]),
    "abs": lambda _n, _o, w: _if(w["a"] < 0, -w["a"], w["a"]),
    "relu": lambda _n, _o, w: _if(w["a"] < 0, w["a"] ^ w["a"], w["a"]),
    "mul": lambda n, o, w: _wide(n, o, w, "a") * _wide(n, o, w, "b"),
    "mac": lambda n, o, w: w["acc"] + _wide(n, o, w, "a") * _wide(n, o, w, "b"),
    "msub": lambda n, o, w: w["acc"] - _wide(n, o, w, "a") * _wide(n, o, w, "b"),
    "mul_const": lambda n, o, w: _wide(n, o, w, "a") * int(o["value"] or 0),
    "mac_const": lambda n, o, w: w["acc"] + _wide(n, o, w, "a") * int(o["value"] or 0),
}


def _less(a: Term, b: Term, signed: bool) -> Any:
    z3 = load_z3()
    return a < b if signed else z3.ULT(a, b)


def _not_more(a: Term, b: Term, signed: bool) -> Any:
    z3 = load_z3()
    return a <= b if signed else z3.ULE(a, b)


_COMPARISONS: dict[str, Callable[[Term, Term, bool], Any]] = {
    "eq": lambda a, b, _signed: a == b,
    "ne": lambda a, b, _signed: a != b,
    "lt": _less,
    "le": _not_more,
    "gt": lambda a, b, signed: _less(b, a, signed),
    "ge": lambda a, b, signed: _not_more(b, a, signed),
}


def _extreme(kind: str, a: Term, b: Term, signed: bool) -> Term:
    return _if(_less(a, b, signed) if kind == "min" else _less(b, a, signed), a, b)


def _shifted(kind: str, width: int, options: Options, words: Words, order: str) -> Term:
    z3 = load_z3()
    signed = order == "s" or bool(options.get("signed"))
    if order == "const":
        amount: Term = z3.BitVecVal(int(options["amount"] or 0), 64)
    else:
        amount = words["b"]
    # A word in which the amount has room, and the shifted word keeps its value.
    size = max(width, amount.size())
    a, by = resized(words["a"], size, signed), resized(amount, size)
    if kind == "shl":
        return resized(a << by, width)
    return resized(a >> by if signed else z3.LShR(a, by), width)
