"""Plans: what they say is what the simulator counts, and each product is done once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from cim_lowering import MACHINES, SMALL_MACHINES, convolution, planned, run, write_machines
from cim_programs import machine as changed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linalg_programs import PRODUCTS, Program, named

from cim_opt.cost.cim_program import time
from cim_opt.errors import UserError
from cim_opt.hardware.cim import load_machine
from cim_opt.lowering.convert_poly_to_cim import ConvertPolyToCimPass
from cim_opt.mapping.cim_code import ORDERS, fits
from cim_opt.mapping.cim_code import program as statements_of
from cim_opt.mapping.cim_covers import MAPPINGS, covers_for
from cim_opt.mapping.cim_packing import Packing, input_packing, output_packing, weight_packing
from cim_opt.mapping.cim_placement import place
from cim_opt.mapping.cim_plan import Parts, Plan, Split
from cim_opt.mapping.cim_search import best_plan, least_cycles, plans, require, tile_of
from cim_opt.mapping.cim_statements import (
    Copy,
    Load,
    Repeat,
    Set,
    Statement,
    assigned,
    late,
    read_first,
    repeat,
    without_unused,
)
from cim_opt.polyhedral.cover import Cover, im2col
from cim_opt.polyhedral.kernel import Axis, MacKernel, Point
from cim_opt.simulators.cim import count

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return write_machines(tmp_path_factory.mktemp("machines"))


def from_zeros(program: Program) -> str:
    """The program with sums that start at 0: nothing is read for that."""
    type = f"tensor<{''.join(f'{n}x' for n in program.shapes[2])}i32>"
    text = program.text.replace("{\n", f"{{\n  %e = arith.constant dense<0> : {type}\n", 1)
    return text.replace("outs(%z", "outs(%e")


# -- what is modelled is what is counted ---------------------------------------------------------

COUNTED = (
    *(convolution(name, 9, 3, same=True) for name in ("conv_1d", "conv_2d", "conv_2d_nchw_fchw")),
    convolution("conv_2d_nhwc_hwcf", 9, 3, 2, 2),
    convolution("depthwise_conv_2d_nchw_chw", 12, 5, same=True),
    convolution("depthwise_conv_1d_nwc_wcm", 30, 7),
    convolution("conv_3d", 5, 3, same=True),
    convolution("conv_2d_nchw_fchw", 9, 3, elements=("i16", "i16", "i32")),
    convolution("depthwise_conv_2d_nchw_chw", 9, 3, elements=("i4", "i4", "i32")),
    *(named(name) for name in ("matmul", "batch_matmul", "matvec")),
)


@pytest.mark.parametrize("number", range(len(COUNTED)))
def test_the_plan_s_figures_are_those_of_the_run(small: dict[str, str], number: int) -> None:
    """Exactly: cycles, each kind of instruction, macro steps, layout."""
    program = COUNTED[number]
    for step, mapping in enumerate(MAPPINGS):
        names = [*MACHINES, *small.values()]
        machine = names[(number + 3 * step) % len(names)]
        module, choice = planned(from_zeros(program), machine, mapping=mapping)
        ConvertPolyToCimPass(machine).apply(None, module)  # pyright: ignore[reportArgumentType]
        report = count(module, "main")
        plan = choice.plan
        assert report.cycles == choice.cycles, (machine, mapping)
        assert report.macro_steps == plan.macro_steps
        assert report.instructions == choice.timing.instructions * plan.parts
        assert report.layout_cycles == plan.layout_cycles, (machine, mapping)
        assert report.launches == plan.parts
        # Attributes hold all that was decided: they give the same plan again.
        assert choice == planned(from_zeros(program), machine, mapping=mapping)[1]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("movement", [False, True])
def test_every_order_is_modelled_as_it_runs(order: str, movement: bool) -> None:
    for name, machine in product(("conv_2d", "conv_2d_nchw_fchw"), ("cim-32x64-8", "cim-32x64-1")):
        program = convolution(name, 11, 5, same=True)
        module, choice = planned(program, machine, order=order, movement=movement)
        ConvertPolyToCimPass(machine).apply(None, module)  # pyright: ignore[reportArgumentType]
        _, report = run(module, program.arrays())
        assert report.cycles == choice.cycles
        assert choice.plan.order == order


# -- each product once -------------------------------------------------------------------------


def coordinates(packing: Packing) -> Array:
    """Coordinates (elements, coordinates) of packed elements; -1 in all where there is none."""
    names = {f"d{axis}": index for axis, index in enumerate(np.indices(packing.shape))}
    texts = [text.replace("floordiv", "//").replace("mod", "%") for text in packing.map]
    values = [np.broadcast_to(eval(text, {}, names), packing.shape) for text in texts]
    rows, found = values[: len(packing.tables)], np.stack(values[len(packing.tables) :], axis=-1)
    for table, row in zip(packing.tables, rows, strict=True):
        found = found + np.array(table, np.int64)[row]
    divisors = np.array(packing.divisors or [1] * found.shape[-1])
    fits = (found % divisors == 0).all(axis=-1)
    found = found // divisors
    fits &= ((found >= 0) & (found < np.array(packing.bounds))).all(axis=-1)
    for first, second in packing.dropped:
        fits &= (rows[0] != first) | (rows[1] != second)
    return np.where(fits[..., None], found, -1)


def products(plan: Plan) -> Iterator[tuple[Point, Point, Point]]:
    """(input, weight, output) of every product that cells of the plan's macros do."""
    for part in range(plan.parts):
        inputs = coordinates(input_packing(plan, part))
        weights = coordinates(weight_packing(plan, part))
        outputs = coordinates(output_packing(plan, part))
        outputs = outputs.reshape(*outputs.shape[:2], -1, outputs.shape[-1])
        sets = inputs.reshape(*inputs.shape[:5], -1, inputs.shape[-1])
        yield from _products(plan, sets, weights, outputs)


def _products(
    plan: Plan, inputs: Array, weights: Array, outputs: Array
) -> Iterator[tuple[Point, Point, Point]]:
    split = plan.split
    counts = (split.rounds, split.groups, split.outputs, split.positions)
    tiles = (plan.group_tiles, plan.output_tiles, plan.chunks, plan.rounds, plan.passes, plan.sets)
    for tile, out, chunk, turn, number, which in np.ndindex(*tiles):
        for macro, (by_round, *others) in enumerate(np.ndindex(*counts)):
            start = macro * plan.step_bytes // plan.input_bytes
            read = inputs[tile, chunk, turn, number, which, start : start + plan.rows]
            cells = weights[tile, out, turn, :, by_round, *others]
            at = int(np.ravel_multi_index(others, counts[1:])) * plan.columns
            at += which * plan.set_sums + number * (plan.columns // plan.passes)
            at += 0 if plan.passes > 1 else chunk * plan.sets * plan.set_sums
            sums = outputs[tile, out, at : at + plan.columns]
            for row, column in np.argwhere(cells[..., 0] >= 0):
                if sums[column, 0] >= 0 and read[row, 0] >= 0:
                    yield tuple(read[row]), tuple(cells[row, column]), tuple(sums[column])


def expected(kernel: MacKernel) -> Iterator[tuple[Point, Point, Point]]:
    for group, oc in product(range(kernel.groups), range(kernel.out_channels)):
        for position in product(*(range(n) for n in kernel.output_shape)):
            for tap in kernel.taps_list():
                read = kernel.reads(position, tap)
                if all(
                    x < axis.pad + axis.length
                    for x, axis in zip(read[1:], kernel.axes, strict=True)
                ):
                    yield (group, *read), (group, oc, *tap), (group, oc, *position)


@st.composite
def kernels(draw: st.DrawFn) -> MacKernel:
    axes: list[Axis] = []
    for _ in range(draw(st.integers(1, 2))):
        taps, stride, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 2)), 1
        if taps > 1:
            dilation = draw(st.integers(1, 2))
        pad = draw(st.integers(0, taps - 1))
        axes.append(Axis(draw(st.integers(1, 7)), taps, stride, dilation, pad))
    channels = draw(st.sampled_from([(1, 1, 1), (3, 1, 1), (1, 3, 2), (2, 2, 7), (9, 1, 1)]))
    return MacKernel(*channels, tuple(axes))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), kernels(), st.sampled_from(sorted(SMALL_MACHINES)), st.sampled_from(MAPPINGS))
def test_each_product_is_done_once(
    data: st.DataObject, kernel: MacKernel, name: str, mapping: Any
) -> None:
    """For any plan, not only for the best one."""
    figures: dict[str, Any] = dict(SMALL_MACHINES[name])
    machine = changed(**figures)
    covers = covers_for(kernel, machine.rows, machine.columns, mapping)
    if not covers:
        return
    tiled = data.draw(st.sampled_from(covers))
    placement = place(tiled.cover, tile_of(kernel, tiled.channels))
    if placement is None or len(placement.columns) > machine.columns:
        return
    found = list(plans(kernel, machine, tiled, placement, 8))
    if not found:
        return
    plan = data.draw(st.sampled_from(found))
    wanted = Counter(expected(kernel))
    assert set(wanted.values()) == {1}
    assert Counter(products(plan)) == wanted
    assert fits(plan)
    order = data.draw(st.sampled_from(ORDERS))
    timing = time(statements_of(replace(plan, order=order)), machine)
    assert least_cycles(plan) <= timing.cycles * plan.parts
    assert plan.macro_steps * machine.rows * machine.columns >= kernel.macs


# -- placements --------------------------------------------------------------------------------

LINE = MacKernel(1, 1, 1, (Axis(16, 3),))


def test_im2col_is_a_partition_of_single_positions() -> None:
    placement = place(im2col(LINE, 32, 8), LINE)
    assert placement is not None
    assert (placement.periods, placement.counts, placement.overlap) == ((1,), (16,), 1)
    assert placement.units == 16
    assert len(placement.images) == 1


def test_a_cover_with_overlapping_columns_is_runs() -> None:
    """Steps every 2 outputs, whose columns are 2 blocks of 2: each output is met twice."""
    covers = covers_for(MacKernel(1, 1, 1, (Axis(64, 7),)), 5, 2, "covers")
    found = [place(tiled.cover, MacKernel(1, 1, 1, (Axis(64, 7),))) for tiled in covers]
    assert any(placement is not None and placement.overlap > 1 for placement in found) or any(
        placement is not None and len(placement.images) > 1 for placement in found
    )


def test_a_cover_without_a_known_form_has_no_placement() -> None:
    cover = im2col(LINE, 32, 8)
    (image,) = cover.images
    # Columns 0 and 3 at every second position: outputs are met, but in no run.
    odd = replace(image, columns=((0, 0), (0, 3)), taps=tuple(row * 2 for row in image.taps))
    assert place(Cover(((2,),), (odd, replace(odd, columns=((0, 0), (0, 5))))), LINE) is None


# -- search ------------------------------------------------------------------------------------

DEPTHWISE = MacKernel(4, 1, 1, (Axis(14, 5, 1, 1, 2, 14), Axis(14, 5, 1, 1, 2, 14)))
MACHINE = load_machine("cim-32x64-8")


def test_the_best_plan_is_the_first_of_all_by_rank() -> None:
    covers = covers_for(DEPTHWISE, 32, 8, "rectangles")
    best = best_plan(DEPTHWISE, MACHINE, covers)
    assert best is not None
    cycles: list[int] = []
    for tiled in covers:
        placement = place(tiled.cover, tile_of(DEPTHWISE, tiled.channels))
        assert placement is not None
        for plan in plans(DEPTHWISE, MACHINE, tiled, placement, 8):
            for order in ORDERS:
                ordered = replace(plan, order=order)
                cycles.append(time(statements_of(ordered), MACHINE).cycles)
    assert best.cycles == min(cycles)
    assert best.timing == time(statements_of(best.plan), MACHINE)


def test_best_is_never_slower_than_a_family() -> None:
    cycles: dict[str, int] = {}
    for mapping in MAPPINGS:
        found = best_plan(DEPTHWISE, MACHINE, covers_for(DEPTHWISE, 32, 8, mapping))
        assert found is not None
        cycles[mapping] = found.cycles
    assert cycles["best"] == min(cycles.values()) < cycles["im2col"]


def test_what_is_given_is_kept() -> None:
    covers = covers_for(DEPTHWISE, 32, 8, "im2col")
    split = Split(groups=2, positions=2)
    found = best_plan(DEPTHWISE, MACHINE, covers, split=split, order="MLDF", layout="steps")
    assert found is not None
    assert (found.plan.split, found.plan.order, found.plan.layout) == (split, "MLDF", "steps")


def test_a_budget_of_nothing_still_finds_a_plan() -> None:
    covers = covers_for(DEPTHWISE, 32, 8, "best")
    assert best_plan(DEPTHWISE, MACHINE, covers, budget=0) is not None


def test_without_movement_macros_share_positions_and_nothing_overlaps() -> None:
    found = best_plan(DEPTHWISE, MACHINE, covers_for(DEPTHWISE, 32, 8, "im2col"), movement=False)
    assert found is not None
    assert found.plan.split == Split(positions=8)
    assert found.plan.order == ORDERS[-1]
    full = best_plan(DEPTHWISE, MACHINE, covers_for(DEPTHWISE, 32, 8, "im2col"))
    assert full is not None and full.cycles < found.cycles


def test_sums_that_do_not_fit_the_output_memory_are_cut_into_chunks() -> None:
    deep = MacKernel(1, 8, 64, (Axis(20, 3, 1, 1, 1, 20), Axis(20, 3, 1, 1, 1, 20)))
    machine = changed(output_bytes=4096)
    found = best_plan(deep, machine, covers_for(deep, 32, 8, "im2col"))
    assert found is not None and found.plan.chunks > 1
    assert fits(found.plan)
    whole = best_plan(deep, MACHINE, covers_for(deep, 32, 8, "im2col"))
    assert whole is not None and whole.plan.chunks == 1


def test_what_does_not_fit_global_memory_is_cut_into_parts() -> None:
    machine = changed(global_bytes=60000)

    def cut(kernel: MacKernel) -> Parts:
        found = best_plan(kernel, machine, covers_for(kernel, 32, 8, "im2col"))
        assert found is not None
        assert found.cycles == found.timing.cycles * found.plan.cut.count
        return found.plan.cut

    by_groups = cut(replace(DEPTHWISE, groups=40))
    assert by_groups.groups > 1 == by_groups.outputs == by_groups.positions
    flat = cut(MacKernel(1, 1, 1, (Axis(100, 3), Axis(100, 3))))
    assert flat.positions > 1 == flat.groups == flat.outputs
    # Weights alone take 200 kB; then a product with several of everything.
    by_outputs = cut(MacKernel(1, 400, 500, (Axis(4),)))
    assert by_outputs.outputs > 1
    assert min(cut(MacKernel(2, 400, 500, (Axis(90),))).groups, by_outputs.outputs) > 1


def test_parts_are_numbered() -> None:
    parts = Parts(2, 3, 4)
    assert [parts.at(number) for number in range(parts.count)] == list(np.ndindex(2, 3, 4))


def test_nothing_fits() -> None:
    machine = changed(global_bytes=64)
    found = best_plan(DEPTHWISE, machine, covers_for(DEPTHWISE, 32, 8, "best"))
    assert found is None
    with pytest.raises(UserError) as error:
        require(found, DEPTHWISE, machine)
    assert error.value.message() == (
        "no mapping of a kernel with outputs (14, 14) fits cim-32x64-8; global memory holds 64 "
        "bytes, output memory 262144; split the kernel into smaller ones, or choose a larger "
        "machine"
    )


def test_sizes_add_up() -> None:
    found = best_plan(DEPTHWISE, MACHINE, covers_for(DEPTHWISE, 32, 8, "best"))
    assert found is not None
    plan = found.plan
    inputs, weights, outputs = plan.packed_bytes
    assert inputs == prod(plan.input_shape)
    assert weights == prod(plan.weight_shape)
    assert outputs == 4 * prod(plan.output_shape)
    assert plan.global_bytes >= inputs + weights + outputs


# -- statements --------------------------------------------------------------------------------


def test_repeat() -> None:
    body = [Set("a", "a", 4)]
    assert repeat(0, body) == []
    assert repeat(1, body) == body
    assert repeat(3, body) == [Repeat(3, tuple(body))]


def test_what_loops_read_and_set() -> None:
    copy = Copy("global", "a", "input", 0, 4)
    body = [Set("b", "a"), copy, Set("a", "a", 4), Repeat(2, (Set("c", "b"),))]
    assert read_first(body) == ["a"]
    assert assigned(body) == ["b", "a", "c"]
    assert read_first([Set("a", 0), copy]) == []


def test_assignments_that_nobody_reads_go() -> None:
    copy = Copy("global", "a", "input", 0, 4)
    # `d` serves itself alone; the next iteration reads `a`.
    body = [copy, Set("a", "a", 4), Set("d", "d", 4)]
    assert without_unused([*body, Set("a", "a", 8)]) == [copy]
    assert without_unused([Repeat(3, tuple(body))]) == [Repeat(3, tuple(body[:2]))]
    assert without_unused(body, frozenset({"a"})) == body[:2]


def test_products_of_linalg_are_planned_in_every_family() -> None:
    """A product has no sliding covers: it takes im2col beside convolutions that have some."""
    for name in PRODUCTS:
        _, choice = planned(named(name), "cim-32x64-8", mapping="covers")
        assert choice.plan.passes == 1


def test_assignments_wait_for_the_first_weights() -> None:
    load, use = Load("w", 1, 4), Copy("output", 0, "global", "y", 4)
    moved: list[Statement] = [Set("y", "y", -4), Set("w", "w", 8), load, use]
    assert late(moved) == [Set("w", "w", 8), load, Set("y", "y", -4), use]
    kept: list[Statement] = [Set("y", "w"), Set("w", "w", 8), load, use]
    assert late(kept) == kept
    assert late([Set("y", "y", -4), use]) == [Set("y", "y", -4), use]
