"""Legality by isl: schedules that are found are legal, and each thing that can break is named."""

import time

import islpy as isl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cim_opt.errors import UserError
from cim_opt.polyhedral.affine_cover import to_cover
from cim_opt.polyhedral.affine_search import search
from cim_opt.polyhedral.affine_text import schedule_text, stages
from cim_opt.polyhedral.cover import check, steps
from cim_opt.polyhedral.isl_text import KernelText, kernel_text
from cim_opt.polyhedral.kernel import Axis, MacKernel
from cim_opt.polyhedral.legality import check_schedule, is_legal

LINE = MacKernel(1, 2, 1, (Axis(8, 3),))
HERE = "S[g, oc, ic, o0, k0]"


def _refusal(there: str, rows: int = 6, columns: int = 8, where: str = "") -> str:
    with pytest.raises(UserError) as caught:
        check_schedule(kernel_text(LINE), f"{{ {HERE} -> [{there}]{where} }}", rows, columns)
    return caught.value.message()


GOOD = "floor(o0/4), 0, (o0 mod 4) + k0, 4*oc + (o0 mod 4)"


def test_the_schedule_of_the_line_is_legal() -> None:
    check_schedule(kernel_text(LINE), f"{{ {HERE} -> [{GOOD}] }}", 6, 8)


def test_an_iteration_that_is_left_out_is_named() -> None:
    message = _refusal(GOOD, where=" : o0 < 7 or k0 < 2")
    assert message.startswith("iteration S[0, ") and message.endswith(
        "7, 2] is not done; the schedule covers every iteration"
    )


def test_an_iteration_done_twice_is_named() -> None:
    twice = f"{{ {HERE} -> [{GOOD}]; {HERE} -> [7, 0, 0, 0] : oc = 1 and o0 = 3 and k0 = 2 }}"
    with pytest.raises(UserError) as caught:
        check_schedule(kernel_text(LINE), twice, 6, 8)
    assert caught.value.message() == (
        "iteration S[0, 1, 0, 3, 2] is done more than once; every iteration is done once"
    )


def test_rows_columns_and_macros_exist() -> None:
    assert _refusal(GOOD, rows=5).endswith("has a row that does not exist; a row is 0 to 4")
    assert _refusal(GOOD, columns=7).endswith("a column that does not exist; a column is 0 to 6")
    moved = GOOD.replace(", 0, ", ", 1, ")
    assert _refusal(moved).endswith("a macro that does not exist; a macro is 0 to 0")
    assert is_legal(kernel_text(LINE), f"{{ {HERE} -> [{moved}] }}", 6, 8, macros=2)


def test_a_row_with_two_inputs_is_named() -> None:
    # Rows by tap alone: neighbouring outputs need different inputs on one row.
    message = _refusal("floor(o0/4), 0, k0, 4*oc + (o0 mod 4)")
    assert message.startswith("one row has several inputs in one step, at [time .., macro, row] = ")
    assert message.endswith("; a row has one of the inputs in each step")


def test_a_column_with_two_outputs_is_named() -> None:
    message = _refusal("floor(o0/4), 0, (o0 mod 4) + k0, (o0 mod 4)")
    assert message.startswith("one column has several outputs in one step, at ")


def _blind(weight: str | None = None) -> KernelText:
    """The line with one input and one output element for all: no convolution, but short."""
    every = f"{{ {HERE} -> A[0] }}"
    return KernelText(kernel_text(LINE).domain, every, every, weight or every)


def test_a_cell_with_two_weights_is_named() -> None:
    blind = _blind(kernel_text(LINE).weight)
    with pytest.raises(UserError, match="one cell has several weights in one step"):
        check_schedule(blind, f"{{ {HERE} -> [o0, oc, 0, 0, 0] }}", 1, 1)


def test_two_iterations_in_one_cell_are_named() -> None:
    with pytest.raises(UserError, match="several iterations share the cell"):
        check_schedule(_blind(), f"{{ {HERE} -> [o0, oc, 0, 0, 0] }}", 1, 1)


def test_what_is_no_schedule_is_refused() -> None:
    assert _refusal("o0, k0").startswith("the schedule is no map from iterations")
    with pytest.raises(UserError, match="no map from iterations"):
        check_schedule(kernel_text(LINE), "{ S[a, b] -> [a, 0, b, 0] }", 6, 8)
    with pytest.raises(UserError, match="isl cannot read the schedule"):
        check_schedule(kernel_text(LINE), "{ S[a, b -> }", 6, 8)
    with pytest.raises(UserError, match=r"for iterations T\[..\]; the kernel's are S"):
        check_schedule(kernel_text(LINE), f"{{ {HERE.replace('S', 'T')} -> [{GOOD}] }}", 6, 8)


def test_neighbours_that_stop_sharing_are_caught() -> None:
    """The same schedule for a kernel of another stride or dilation is not legal."""
    for axis in (Axis(8, 3, 2), Axis(8, 3, 1, 2)):
        other = kernel_text(MacKernel(1, 2, 1, (axis,)))
        assert not is_legal(other, f"{{ {HERE} -> [{GOOD}] }}", 6, 8)


def test_the_proof_is_quick() -> None:
    kernel = MacKernel(96, 1, 1, (Axis(56, 7, pad=3, inputs=56),) * 2)
    text = schedule_text(search(kernel, 32, 8)[0])
    begin = time.process_time()
    check_schedule(kernel_text(kernel), text, 32, 8)
    assert time.process_time() - begin < 0.3


# -- whatever the search finds -------------------------------------------------------------------

AXES = st.builds(Axis, st.integers(1, 9), st.integers(1, 4), st.integers(1, 2), st.integers(1, 2))
KERNELS = st.builds(
    MacKernel,
    st.integers(1, 2),
    st.integers(1, 5),
    st.integers(1, 3),
    st.lists(AXES, min_size=0, max_size=2).map(tuple),
)


@settings(deadline=None, max_examples=40)
@given(KERNELS, st.integers(1, 12), st.integers(1, 5))
def test_found_schedules_are_legal_and_are_covers(
    kernel: MacKernel, rows: int, columns: int
) -> None:
    for schedule in search(kernel, rows, columns, most=3):
        text = schedule_text(schedule)
        check_schedule(kernel_text(kernel), text, rows, columns)
        cover = to_cover(schedule, kernel, rows, columns)
        check(cover, kernel, rows, columns)
        assert steps(cover, kernel) == schedule.steps
        assert len(cover.images) == schedule.images
        # The map itself says how many steps are used: distinct [time .., macro].
        uses = isl.Set(kernel_text(kernel).domain).apply(isl.Map(text))
        uses = uses.project_out(isl.dim_type.set, uses.dim(isl.dim_type.set) - 2, 2)
        assert uses.count_val().to_python() == schedule.steps


def test_stages_compose_to_the_schedule() -> None:
    kernel = MacKernel(1, 2, 2, (Axis(9, 3), Axis(8, 5)))
    schedule = search(kernel, 16, 8)[0]
    found = stages(schedule)
    domain = isl.Set(kernel_text(kernel).domain)
    affine = isl.Map(found.affine).intersect_domain(domain)
    whole = isl.Map(schedule_text(schedule)).intersect_domain(domain)
    assert affine.is_injective()
    rows, columns = isl.Map(found.row), isl.Map(found.column)
    high, wide = rows.dim(isl.dim_type.in_), columns.dim(isl.dim_type.in_)
    count = affine.dim(isl.dim_type.out)
    times = count - high - wide
    time_part = affine.project_out(isl.dim_type.out, times, high + wide)
    row_part = affine.project_out(isl.dim_type.out, times + high, wide)
    row_part = row_part.project_out(isl.dim_type.out, 0, times).apply_range(rows)
    column_part = affine.project_out(isl.dim_type.out, 0, times + high).apply_range(columns)
    tiled = row_part.flat_range_product(column_part).apply_range(isl.Map(found.tile))
    row_tile_column_tile = tiled.project_out(isl.dim_type.out, 2, 2)
    inside = tiled.project_out(isl.dim_type.out, 0, 2)
    macro = isl.Map("{ S[g, oc, ic, o0, o1, k0, k1] -> [0] }").intersect_domain(domain)
    composed = time_part.flat_range_product(row_tile_column_tile)
    composed = composed.flat_range_product(macro).flat_range_product(inside)
    assert composed.is_equal(whole)


def test_a_cover_is_made_for_its_own_kernel() -> None:
    schedule = search(LINE, 6, 8)[0]
    with pytest.raises(ValueError, match="a schedule of"):
        to_cover(schedule, MacKernel(1, 2, 1, (Axis(9, 3),)), 6, 8)
    with pytest.raises(ValueError, match="a schedule of 1 axes"):
        to_cover(schedule, MacKernel(1, 2, 1, ()), 6, 8)
