"""Every row program of both libraries computes what it says: all inputs where they are few."""

from itertools import product

import pytest
from microprogram_checks import check

from cim_opt.errors import UserError
from cim_opt.microprograms.library import LIBRARY_NAMES, OPERATIONS, library, options

# What an operation cannot do without.
VALUES = (0, 1, 3, 11, 0xB5A7, -1, -5, 32_412)
AMOUNTS = (0, 1, 3, 70)
GIVEN: dict[str, list[dict[str, int]]] = {
    "fill": [{"value": value} for value in VALUES],
    "mul_const": [{"value": value} for value in VALUES],
    "mac_const": [{"value": value} for value in VALUES],
    "shl_const": [{"amount": amount} for amount in AMOUNTS],
    "shr_const": [{"amount": x, "signed": y} for x in AMOUNTS for y in (False, True)],
}
QUADRATIC = {"mul", "mac", "msub", "div_u", "div_s", "rem_u", "rem_s"}

each_library = pytest.mark.parametrize("name", LIBRARY_NAMES)
each_operation = pytest.mark.parametrize("operation", OPERATIONS)


@each_library
@each_operation
def test_all_inputs_of_few_bits(name: str, operation: str) -> None:
    for width in (1, 2, 3, 4):
        for given in GIVEN.get(operation, [{}]):
            check(name, operation, width, exhaustive_bits=12, **given)


@each_library
@each_operation
def test_widths_between(name: str, operation: str) -> None:
    for width in (5, 6, 7):
        for given in GIVEN.get(operation, [{}])[:3]:
            check(name, operation, width, exhaustive_bits=10, **given)


@each_library
@each_operation
@pytest.mark.parametrize("width", (8, 16, 31, 32, 64))
def test_corners_and_random_words(name: str, operation: str, width: int) -> None:
    for given in GIVEN.get(operation, [{}]):
        check(name, operation, width, **given)


POLARITY = ("a_complemented", "b_complemented", "out_complemented")


@each_library
@pytest.mark.parametrize("operation", ("and", "or", "xor", "add", "sub"))
def test_complemented_operands(name: str, operation: str) -> None:
    refused = 0
    for polarity in product((False, True), repeat=3):
        given = dict(zip(POLARITY, polarity, strict=True))
        for width in (1, 2, 3, 4, 13):
            try:
                check(name, operation, width, **given)
            except UserError:
                refused += 1
    # Sums of which no operand goes against the others.
    assert refused == (10 if operation in ("add", "sub") else 0)


@each_library
@pytest.mark.parametrize(
    "operation", [x for x in OPERATIONS if "complemented" in options(x) and x[:3] != "mac"]
)
def test_all_operands_complemented(name: str, operation: str) -> None:
    given = {"amount": 1} if "amount" in options(operation) else {}
    for width in (1, 2, 3, 4, 9):
        check(name, operation, width, complemented=True, **given)


@each_library
def test_complemented_choices(name: str) -> None:
    for width in (1, 2, 5):
        check(name, "mask", width, choice_complemented=True)
        check(name, "select", width, choice_complemented=True)
        check(name, "select", width, choice_complemented=True, complemented=True)


@each_library
def test_operands_of_other_widths(name: str) -> None:
    for width, narrow, sign in product((1, 2, 3, 6), range(1, 7), (False, True)):
        check(name, "copy", width, a_width=narrow, signed=sign)
        if narrow > width:
            continue
        check(name, "add", width, b_width=narrow, b_signed=sign)
        check(name, "sub", width, b_width=narrow, b_signed=sign)
        for operation in ("shl", "shr_u", "shr_s"):
            check(name, operation, width, b_width=narrow)
        check(name, "mac_const", width, value=-11, a_width=narrow, signed=sign)
        check(name, "mul_const", width, value=11, a_width=narrow, signed=sign)
    check(name, "bitcount", 3, out_width=3)
    check(name, "bitcount", 8, out_width=8)


@each_library
@pytest.mark.parametrize("width", (1, 2, 3, 4, 5, 8))
def test_products_of_all_widths(name: str, width: int) -> None:
    for a, b, sign in product(range(1, width + 1), range(1, width + 1), (False, True)):
        check(name, "mul", width, exhaustive_bits=10, a_width=a, b_width=b, signed=sign)
        check(name, "mac", width, a_width=a, b_width=b, signed=sign)


@each_library
@pytest.mark.parametrize("operation", ("mac", "msub"))
def test_accumulators_in_both_polarities(name: str, operation: str) -> None:
    for width, narrow, sign, flip in product((3, 6), (1, 2, 3), (False, True), (False, True)):
        check(
            name,
            operation,
            width,
            a_width=narrow,
            b_width=2,
            signed=sign,
            complemented=flip,
        )


def test_complemented_products_of_cim_opt() -> None:
    for width, a, sign in product((2, 3, 4, 8), (1, 2), (False, True)):
        check("cim-opt", "mul", width, a_width=a, b_width=2, signed=sign, out_complemented=True)
    for width, value in product((1, 3, 8), range(40)):
        check("cim-opt", "mul_const", width, value=value, out_complemented=True)
        check("cim-opt", "mac_const", width, value=value, complemented=True)
        check("cim-opt", "neg", width, out_complemented=True)


@each_library
def test_full_products(name: str) -> None:
    for width in (16, 32):
        for sign in (False, True):
            check(name, "mul", 2 * width, a_width=width, b_width=width, signed=sign)


@each_library
@pytest.mark.parametrize("value", range(64))
def test_every_constant_of_six_bits(name: str, value: int) -> None:
    check(name, "mul_const", 6, value=value)
    check(name, "mac_const", 6, value=value)


@pytest.mark.parametrize(
    ("operation", "width", "given", "message"),
    [
        ("ad", 8, {}, "no microprogram 'ad'; nearest: and, add, mac"),
        ("add", 0, {}, "microprogram add of 0 bits; 1 to 64 bits; narrow or split the operand"),
        ("add", 65, {}, "microprogram add of 65 bits; 1 to 64 bits; narrow or split the operand"),
        ("abs", 8, {"value": 1}, "microprogram abs has no option 'value'; it has none"),
        ("mask", 8, {"value": 1}, "has no option 'value'; it has choice_complemented"),
        ("fill", 8, {}, "microprogram fill without value; give it a value"),
        ("mul", 8, {"a_width": 9}, "mul: operands of more than 8 bits; give their low bits only"),
        ("add", 8, {"b_width": 9}, "microprogram add, sub: b has 9 bits; at most 8 bits"),
        ("add", 8, {"out_complemented": True}, "add: no such polarity; complement one operand"),
        ("bitcount", 8, {"out_width": 3}, "bitcount: a result of 3 bits; give it 4 or more"),
        (
            "add",
            8,
            {"b_width": 4, "b_complemented": True},
            "a complemented operand that grows without sign; extend it first",
        ),
    ],
)
def test_what_no_library_has(
    operation: str, width: int, given: dict[str, int], message: str
) -> None:
    with pytest.raises(UserError) as error:
        library("cim-opt").program(operation, width, **given)
    assert message in error.value.message()


def test_what_only_cim_opt_has() -> None:
    for operation, given in (("mul", {}), ("mul_const", {"value": 3})):
        with pytest.raises(UserError, match=f"{operation}: no complemented product in this libr"):
            library("simdram").program(operation, 8, out_complemented=True, **given)


def test_unknown_library() -> None:
    with pytest.raises(UserError) as error:
        library("ambit")
    assert error.value.message() == (
        "unknown library of microprograms 'ambit'; choose one of simdram, cim-opt"
    )
