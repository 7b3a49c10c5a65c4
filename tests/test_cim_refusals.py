"""What is refused on the way to macros: one line each, with the place where there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cim_lowering import CONTEXT
from refusals import refusals_in

from cim_opt.errors import UserError
from cim_opt.lowering import poly_covers, poly_kernels, poly_plans
from cim_opt.lowering.convert_poly_to_cim import ConvertPolyToCimPass
from cim_opt.mapping import cim_search
from cim_opt.passes.poly_cover import PolyCoverPass
from cim_opt.passes.poly_data_movement import PolyDataMovementPass
from cim_opt.polyhedral import cover, legality
from cim_opt.polyhedral.cover import Cover, Image, check, im2col
from cim_opt.polyhedral.isl_text import kernel_text
from cim_opt.polyhedral.kernel import Axis, MacKernel
from cim_opt.tools.load_module import parse_text

MAC = """%a0 = arith.extsi %a : i8 to i32
    %b0 = arith.extsi %b : i8 to i32
    %p = arith.muli %a0, %b0 : i32
    %s = arith.addi %acc, %p : i32"""
ROWS = "dense<[[0, 0], [0, 1], [0, 2], [0, 3]]> : tensor<4x2xi32>"
COLUMNS = "dense<[[0, 0], [0, 1]]> : tensor<2x2xi32>"
NONE = "dense<> : tensor<0x2xi32>"


def cover_text(
    rows: str = ROWS, columns: str = COLUMNS, dropped: str = NONE, period: int = 2, packed: int = 1
) -> str:
    """A cover of 2 outputs at every second position, or one like it."""
    return (
        f"cover <dense<{period}> : tensor<1x1xi32>, dense<[[1, 1, {packed}]]> : tensor<1x3xi32>, "
        f"[#poly.image<{rows}, {columns}, {dropped}>]>"
    )


def kernel(
    how: str = "",
    body: str = MAC,
    domain: str = "0 <= o <= 7 and 0 <= k <= 2",
    reads: str = "o + k",
) -> str:
    return f"""func.func @main(%x: tensor<10xi8>, %w: tensor<3xi8>, %z: tensor<8xi32>)
    -> tensor<8xi32> {{
  %y = poly.kernel ins(%x, %w : tensor<10xi8>, tensor<3xi8>) outs(%z : tensor<8xi32>)
    domain <"{{ [o, k] : {domain} }}">
    accesses [#poly.map<"{{ [o, k] -> [{reads}] }}">, #poly.map<"{{ [o, k] -> [k] }}">,
              #poly.map<"{{ [o, k] -> [o] }}">] {how} {{
  ^bb0(%a: i8, %b: i8, %acc: i32):
    {body}
    poly.yield %s : i32
  }}
  func.return %y : tensor<8xi32>
}}
"""


def converted(text: str, machine: str = "cim-32x64-8") -> None:
    module = parse_text(text, "test.mlir")
    ConvertPolyToCimPass(machine).apply(CONTEXT, module)
    module.verify()


@pytest.mark.parametrize(
    "how",
    [
        "",
        cover_text(),
        cover_text() + " macros [1, 1, 1, 4]",
        'macros [1, 1, 1, 2] order "MDLF"',
        cover_text() + ' macros [1, 1, 1, 4] layout "window0" order "MGLDF"',
    ],
)
def test_what_is_refused_below_is_fine_otherwise(how: str) -> None:
    converted(kernel(how))


REFUSED = {
    "no multiplication": (
        kernel(body=MAC.replace("muli", "addi")),
        "the body of 'poly.kernel' is no multiply-accumulate; macros add the product of an input "
        "and a weight to an output; compute the rest before or after the kernel",
    ),
    "another accumulator": (
        kernel(body=MAC.replace("%p = arith.muli %a0, %b0", "%p = arith.muli %a0, %acc")),
        "the body of 'poly.kernel' is no multiply-accumulate; macros add the product of an input "
        "and a weight to an output; compute the rest before or after the kernel",
    ),
    "domain": (
        kernel(domain="1 <= o <= 7 and 0 <= k <= 2"),
        "a kernel whose domain is { [o, k] : 0 < o <= 7 and 0 <= k <= 2 }; "
        "domains are boxes that start at 0",
    ),
    "access": (
        kernel(reads="o + floor(k / 2)"),
        "the access to the input is { [o, k] -> [o + floor((k)/2)] }; indices are sums of loops "
        "times integers; leave out divisions, remainders and cases",
    ),
    "no kernel": (
        kernel(reads="o"),
        "loop k is used by the weights alone; "
        "a kernel uses each loop in two or three of its operands",
    ),
    "macros": (
        kernel("macros [1, 1, 1, 9]"),
        "a kernel mapped to 9 macros; cim-32x64-8 has 8; "
        "map it for this machine with poly-map-macros",
    ),
    "order": (
        kernel('order "MMM"'),
        "order 'MMM' of a kernel; the orders are MGLDF, MLGDF, MGDLF, "
        "MGLDJKF, MGKLDFJ, MGJKLDF, MGKLDJF, MLDF, MDLF; use one of these",
    ),
    "layout": (
        kernel('macros [1, 1, 1, 2] layout "window7"'),
        "no plan for a kernel with macros [1, 1, 1, 2] and layout 'window7'; its cover cannot be "
        "laid on cim-32x64-8 in this way; let poly-map-macros and poly-layout choose",
    ),
    "layout alone": (
        kernel('layout "diagonal"'),
        "no plan for a kernel with layout 'diagonal'; its cover cannot be "
        "laid on cim-32x64-8 in this way; let poly-map-macros and poly-layout choose",
    ),
    "cover of another rank": (
        kernel(
            "cover <dense<1> : tensor<2x2xi32>, dense<1> : tensor<1x3xi32>, [#poly.image<"
            "dense<0> : tensor<1x3xi32>, dense<0> : tensor<1x3xi32>, dense<> : tensor<0x2xi32>>]>"
        ),
        "a lattice of rank 2; the kernel has 1 axes",
    ),
    "cover that leaves out outputs": (
        kernel(cover_text(period=3)),
        "tap (0, 0) of outputs (2,) modulo the lattice, channel 0, is done never; "
        "each product is done once",
    ),
    "cover that does products twice": (
        kernel(cover_text(period=1)),
        "tap (0, 0) of outputs (0,) modulo the lattice, channel 0, is done 2 times; "
        "each product is done once",
    ),
    "cover that drops a product": (
        kernel(cover_text(dropped="dense<[[1, 0]]> : tensor<1x2xi32>")),
        "tap (0, 1) of outputs (0,) modulo the lattice, channel 0, is done never; "
        "each product is done once",
    ),
    "cover with equal columns": (
        kernel(cover_text(columns="dense<0> : tensor<2x2xi32>")),
        "image 0 has two equal columns; each offset has one of them",
    ),
    "cover that is no lattice": (
        kernel(cover_text(period=0)),
        "((0,),) is no lattice basis in Hermite normal form; its rows are upper triangular",
    ),
    "cover that is too high": (
        kernel(
            cover_text(
                rows=f"dense<{[[0, n] for n in range(33)]}> : tensor<33x2xi32>",
                columns=COLUMNS,
            )
        ),
        "image 0 has 33 rows; the macro has 32",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused(why: str) -> None:
    text, message = REFUSED[why]
    with pytest.raises(UserError) as error:
        converted(text)
    assert str(error.value) == f"test.mlir:3:3: error: {message}"


def small(folder: Path) -> str:
    path = folder / "small.toml"
    path.write_text('base = "cim-32x64-8"\nname = "small"\nglobal_bytes = 64\n')
    return str(path)


@pytest.mark.parametrize("step", [PolyCoverPass, ConvertPolyToCimPass])
def test_no_plan_fits(tmp_path: Path, step: type[PolyCoverPass | ConvertPolyToCimPass]) -> None:
    module = parse_text(kernel(), "test.mlir")
    with pytest.raises(UserError) as error:
        step(small(tmp_path)).apply(CONTEXT, module)
    assert str(error.value) == (
        "test.mlir:3:3: error: no mapping of a kernel with outputs (8,) fits small; global memory "
        "holds 64 bytes, output memory 262144; split the kernel into smaller ones, or choose a "
        "larger machine"
    )


def test_an_unknown_order_is_refused_where_it_is_chosen() -> None:
    module = parse_text(kernel(), "test.mlir")
    with pytest.raises(UserError, match="order 'LMF' of a kernel; the orders are MGLDF, "):
        PolyDataMovementPass(order="LMF").apply(CONTEXT, module)


# -- covers that no attribute can say ----------------------------------------------------------

LINE = MacKernel(1, 1, 1, (Axis(8, 3),))
IMAGE = im2col(LINE, 32, 8).images[0]


def checked(image: Image, packed: int = 1) -> Callable[[], None]:
    return lambda: check(Cover(((1,),), (image,), packed), LINE)


COVERS = {
    "shape": (
        checked(Image(IMAGE.rows, IMAGE.columns, IMAGE.taps[:2])),
        "image 0 has cells of shape (2, 1); it has 3 rows and 1 columns",
    ),
    "another tap": (
        checked(Image(IMAGE.rows, IMAGE.columns, ((1,), (1,), (2,)))),
        "image 0 has tap 1 between input (0, 0) and output (0, 0); the tap there is 0",
    ),
    "no tap": (
        checked(Image(((0, 5), *IMAGE.rows[1:]), IMAGE.columns, IMAGE.taps)),
        "image 0 has tap 0 between input (0, 5) and output (0, 0); no tap joins them",
    ),
    "packed": (checked(IMAGE, 0), "0 groups packed; at least one shares an image"),
}


@pytest.mark.parametrize("why", COVERS)
def test_covers_that_are_none(why: str) -> None:
    act, message = COVERS[why]
    with pytest.raises(UserError) as error:
        act()
    assert error.value.message() == message


# -- schedules -----------------------------------------------------------------------------------

HERE = "S[g, oc, ic, o0, k0]"
GOOD = "floor(o0/4), 0, (o0 mod 4) + k0, (o0 mod 4)"
SCHEDULES = {
    "text": ("nonsense", "isl cannot read the schedule; "),
    "results": (
        f"{{ {HERE} -> [o0, k0] }}",
        "the schedule is no map from iterations to [time .., macro, row, column]; "
        "it has 5 loops and 2 results; the kernel has 5 loops",
    ),
    "name": (
        f"{{ {HERE} -> [{GOOD}] }}".replace("S[", "T["),
        "the schedule is for iterations T[..]; the kernel's are S[..]",
    ),
    "missing": (
        f"{{ {HERE} -> [{GOOD}] : o0 > 0 }}",
        "iteration S[0, 0, 0, 0, 0] is not done; the schedule covers every iteration",
    ),
    "row": (
        f"{{ {HERE} -> [{GOOD.replace('+ k0', '+ k0 + 2')}] }}",
        "iteration S[0, ... has a row that does not exist; a row is 0 to 5",
    ),
    "twice": (
        f"{{ {HERE} -> [{GOOD}]; {HERE} -> [9, 0, 0, 0] : o0 = 1 and k0 = 1 }}",
        "iteration S[0, 0, 0, 1, 1] is done more than once; every iteration is done once",
    ),
    "inputs": (
        f"{{ {HERE} -> [0, 0, k0, o0] }}",
        "one row has several inputs in one step, at [time .., macro, row] = [0, 0, 0]; "
        "a row has one of the inputs in each step",
    ),
}


@pytest.mark.parametrize("why", SCHEDULES)
def test_schedules_that_are_illegal(why: str) -> None:
    schedule, message = SCHEDULES[why]
    with pytest.raises(UserError) as error:
        legality.check_schedule(kernel_text(LINE), schedule, 6, 8)
    assert all(part in error.value.message() for part in message.split("..."))


SHARED = (
    "several iterations share the cell [time .., macro, row, column] = [0, 0, 0, 0]; "
    "a cell does one multiply-accumulate in each step"
)


def test_iterations_that_share_a_cell() -> None:
    """With one element for all of them, so that nothing else is wrong."""
    every = f"{{ {HERE} -> A[0] }}"
    kernel = replace(kernel_text(LINE), input=every, weight=every, output=every)
    with pytest.raises(UserError) as error:
        legality.check_schedule(kernel, f"{{ {HERE} -> [0, 0, 0, 0] }}", 1, 1)
    assert error.value.message() == SHARED


# -- every message is tested -------------------------------------------------------------------


_ALL = [*REFUSED.values(), *COVERS.values(), *SCHEDULES.values(), ("", SHARED)]


@pytest.mark.parametrize(
    "module", [poly_kernels, poly_plans, poly_covers, cim_search, cover, legality]
)
def test_every_refusal_is_tested(module: object) -> None:
    messages = [message for _, message in _ALL]
    messages.append("no mapping of a kernel with outputs (8,) fits small")
    path = Path(str(getattr(module, "__file__")))  # noqa: B009
    for pieces in refusals_in(path, ("UserError",)):
        assert any(all(piece in message for piece in pieces) for message in messages), pieces
