"""The mathematics of data on UPMEM: granules, blocks in WRAM, arrays in MRAM. No IR."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cim_opt.errors import UserError
from cim_opt.hardware.upmem import UpmemMachine, load_machine
from cim_opt.mapping.upmem_arrangement import (
    ALIGN,
    BLOCK_BYTES,
    SLACK_BYTES,
    TASKLETS,
    MramArray,
    StageShape,
    Stream,
    choose_blocking,
    granule,
    place_arrays,
    round_up,
)

MACHINE = load_machine("upmem-2560")

sizes = st.sampled_from((1, 2, 4, 8))
streams = st.builds(Stream, sizes, st.integers(1, 100), st.integers(0, 20))
shapes = st.builds(
    StageShape,
    st.lists(streams, min_size=1, max_size=3).map(tuple),
    st.lists(st.builds(Stream, sizes, st.integers(1, 4)), max_size=3).map(tuple),
    st.integers(1, 12),
    st.floats(1, 1000),
    st.integers(0, 64).map(lambda n: n * ALIGN),
    st.sampled_from((0, 0, 1, 1024, 20_000)),
    st.booleans(),
)
arrays = st.builds(MramArray, st.integers(0, 5000), st.integers(0, 300))


def machine_with(**changes: object) -> UpmemMachine:
    return UpmemMachine.from_dict({**MACHINE.to_dict(), **changes})


# -- granules --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bytes_per_step", "expected"),
    [([], 1), ([4], 2), ([1], 8), ([8], 1), ([4, 1], 8), ([12], 2), ([24], 1), ([4, 2, 8], 4)],
)
def test_granule(bytes_per_step: list[int], expected: int) -> None:
    assert granule(bytes_per_step) == expected


@given(st.lists(st.integers(1, 300), max_size=5))
def test_a_granule_is_the_first_that_is_aligned(bytes_per_step: list[int]) -> None:
    step = granule(bytes_per_step)
    assert all(step * size % ALIGN == 0 for size in bytes_per_step)
    for fewer in range(1, step):
        assert any(fewer * size % ALIGN for size in bytes_per_step)


@given(st.integers(0, 10_000), st.integers(1, 500))
def test_round_up(value: int, multiple: int) -> None:
    rounded = round_up(value, multiple)
    assert rounded % multiple == 0
    assert 0 <= rounded - value < multiple


@given(streams, st.integers(0, 1000))
def test_a_stream_sees_its_elements_and_the_halo(stream: Stream, owners: int) -> None:
    assert stream.elements(owners) == owners * stream.per_owner + stream.halo
    room = stream.buffer_elements(owners)
    assert stream.elements(owners) <= room < stream.elements(owners) + stream.transfer_granule
    assert room * stream.element_bytes % ALIGN == 0


def test_the_elements_of_windows_overlap() -> None:
    # 100 windows of 5 see 104 elements, 100 groups of 5 see 500.
    assert Stream(4, 1, 4).elements(100) == 104
    assert Stream(4, 5).elements(100) == 500


# -- WRAM ------------------------------------------------------------------------------------------


@given(shapes, st.sampled_from(BLOCK_BYTES))
def test_blocks_are_whole_granules_within_their_bytes(stage: StageShape, size: int) -> None:
    block = stage.block_owners(size)
    assert block >= stage.granule
    assert block % stage.granule == 0
    for stream in (*stage.reads, *stage.writes):
        assert block * stream.per_owner * stream.element_bytes % ALIGN == 0
        if block > stage.granule:
            assert stream.elements(block) * stream.element_bytes <= size
    more = block + stage.granule
    assert any(s.elements(more) * s.element_bytes > size for s in (*stage.reads, *stage.writes))


def wram_needed(stages: list[StageShape], tasklets: int, blocks: tuple[int, ...]) -> int:
    """WRAM of all tasklets' buffers, counted stream by stream."""
    total = 0
    for stage, block in zip(stages, blocks, strict=True):
        for stream in (*stage.reads, *stage.writes):
            size = stream.buffer_elements(block) * stream.element_bytes
            total += tasklets * round_up(size, ALIGN)
        total += tasklets * stage.tasklet_bytes
    return total


@given(
    st.lists(shapes, min_size=1, max_size=4),
    st.integers(0, 1000).map(lambda n: n * ALIGN),
    st.integers(0, 100_000),
    st.none() | st.integers(1, 24),
    st.none() | st.sampled_from(BLOCK_BYTES),
)
def test_what_is_chosen_fits_into_wram(
    stages: list[StageShape], shared: int, units: int, tasklets: int | None, block: int | None
) -> None:
    try:
        choice = choose_blocking(MACHINE, stages, shared, units, tasklets, block)
    except UserError as error:
        assert error.what.startswith("WRAM is too small: ")
        return
    if tasklets is not None:
        assert choice.tasklets == tasklets
    tables = sum(
        copies * round_up(stage.table_bytes, ALIGN)
        for copies, stage in zip(choice.copies, stages, strict=True)
    )
    used = wram_needed(stages, choice.tasklets, choice.blocks) + tables + shared
    assert used == choice.wram_bytes
    stacks = choice.tasklets * (MACHINE.stack_bytes + MACHINE.wram_reserved_bytes_per_tasklet)
    assert used + stacks + MACHINE.wram_reserved_bytes <= MACHINE.wram_bytes == 65536
    for stage, owners, copies in zip(stages, choice.blocks, choice.copies, strict=True):
        assert owners % stage.granule == 0
        assert owners * min(s.element_bytes for s in stage.reads) > 0
        if not stage.table_bytes:
            assert copies == 0
        elif not stage.shareable:
            assert copies == choice.tasklets
        else:
            assert 1 <= copies <= choice.tasklets


@given(st.lists(shapes, min_size=1, max_size=3), st.integers(1, 100_000))
def test_no_other_choice_has_fewer_cycles(stages: list[StageShape], units: int) -> None:
    try:
        best = choose_blocking(MACHINE, stages, 0, units)
    except UserError:
        return
    for tasklets in TASKLETS[::4]:
        for block in BLOCK_BYTES[::3]:
            try:
                other = choose_blocking(MACHINE, stages, 0, units, tasklets, block)
            except UserError:
                continue
            assert best.cycles <= other.cycles


MAP = StageShape((Stream(4), Stream(4)), (Stream(4),), 1, 5.0)


def test_a_plain_map_takes_many_tasklets_and_long_blocks() -> None:
    choice = choose_blocking(MACHINE, [MAP], 0, 10_000)
    assert choice.tasklets >= 11
    assert choice.blocks[0] * 4 >= 128


def test_a_private_histogram_of_256_bins_has_one_copy_a_tasklet() -> None:
    # facts: 16 tasklets with blocks of 1 KB leave 2,021 bytes each, 505 bins of 4 bytes.
    table = StageShape((Stream(4),), (), 1, 8.0, 0, 256 * 4, True)
    choice = choose_blocking(MACHINE, [table], 0, 10_000, 16, 1024)
    assert choice.copies == (16,)
    assert choice.wram_bytes == 16 * 1024 + 16 * 1024
    assert MACHINE.wram_heap(16) == 48_732


def test_copies_are_halved_until_they_fit() -> None:
    table = StageShape((Stream(4),), (), 1, 8.0, 0, 512 * 4, True)
    # (48,732 - 16,384) / 2,048 = 15 copies fit: 16 are one too many.
    assert choose_blocking(MACHINE, [table], 0, 10_000, 16, 1024).copies == (8,)
    assert choose_blocking(MACHINE, [table], 0, 10_000, 12, 1024).copies == (12,)
    large = StageShape((Stream(4),), (), 1, 8.0, 0, 4096 * 4, True)
    assert choose_blocking(MACHINE, [large], 0, 10_000, 16, 256).copies == (2,)


def test_the_larger_of_two_tables_is_shared_first() -> None:
    large = StageShape((Stream(4),), (), 1, 8.0, 0, 8192, True)
    small = StageShape((Stream(4),), (), 1, 8.0, 0, 64, True)
    choice = choose_blocking(MACHINE, [large, small], 0, 10_000, 16, 256)
    assert choice.copies == (4, 16)


def test_what_does_not_fit_is_refused_with_numbers() -> None:
    row = StageShape((Stream(4, 20_000),), (Stream(4),), 1, 5.0)
    with pytest.raises(UserError) as info:
        choose_blocking(MACHINE, [row], 800, 100)
    assert info.value.message() == (
        "WRAM is too small: 160008 bytes of blocks on 1 tasklet, 800 bytes of shared operands; "
        "upmem-2560 has 64107 bytes beside the stacks; "
        "use smaller groups, windows, accumulators or shared operands"
    )
    table = StageShape((Stream(4),), (), 1, 5.0, 0, 40_000, False)
    with pytest.raises(UserError) as info:
        choose_blocking(MACHINE, [table], 0, 100, 2, 64)
    assert info.value.message() == (
        "WRAM is too small: 128 bytes of blocks on 2 tasklets, 80000 bytes of accumulators; "
        "upmem-2560 has 63082 bytes beside the stacks; choose fewer tasklets or a smaller block"
    )


def test_tasklets_that_the_machine_has_not() -> None:
    with pytest.raises(UserError, match="25 tasklets on upmem-2560"):
        choose_blocking(MACHINE, [MAP], 0, 100, 25)


# -- MRAM ------------------------------------------------------------------------------------------


@given(
    st.lists(arrays, min_size=1, max_size=6).filter(lambda a: any(x.per_unit_bytes for x in a)),
    st.integers(1, 64),
    st.none() | st.integers(0, 1_000_000),
    st.sampled_from((4096, 65_536, 67_108_864)),
)
def test_arrays_lie_apart_aligned_and_inside(
    wanted: list[MramArray], step: int, units: int | None, mram: int
) -> None:
    machine = machine_with(mram_bytes=mram)
    try:
        placement = place_arrays(machine, wanted, step, units)
    except UserError as error:
        assert error.what.startswith("MRAM is too small")
        return
    assert placement.units >= step
    assert placement.units % step == 0
    ends = [o + c for o, c in zip(placement.offsets, placement.capacities, strict=True)]
    assert placement.offsets[0] == 0
    assert all(end <= start for end, start in zip(ends, placement.offsets[1:], strict=False))
    assert all(a < b for a, b in pairwise(placement.offsets))
    assert ends[-1] <= mram
    for array, offset, capacity in zip(
        wanted, placement.offsets, placement.capacities, strict=True
    ):
        assert offset % ALIGN == capacity % ALIGN == 0
        data = placement.units * array.per_unit_bytes + array.fixed_bytes
        assert capacity >= data + SLACK_BYTES
    if units is not None:
        assert placement.units <= max(round_up(units, step), step)


def test_as_many_units_as_are_wanted_or_fit() -> None:
    one = [MramArray(8), MramArray(8)]
    assert place_arrays(MACHINE, one, 2, 100).units == 100
    assert place_arrays(MACHINE, one, 2, 0).units == 2
    # 64 MB less the slack of two arrays: half of it each.
    most = (67_108_864 - 2 * SLACK_BYTES - 2 * ALIGN) // 16 // 2 * 2
    assert place_arrays(MACHINE, one, 2, None).units == most
    assert place_arrays(MACHINE, one, 2, 10**9).units == most


def test_what_does_not_fit_into_mram_is_refused_with_numbers() -> None:
    with pytest.raises(UserError) as info:
        place_arrays(machine_with(mram_bytes=4096), [MramArray(8000), MramArray(8)], 1, 5)
    assert info.value.message() == (
        "MRAM is too small: the smallest piece of work takes 8056 bytes; "
        "upmem-2560 has 4096 bytes a DPU; use smaller groups, windows or accumulators"
    )


# -- worked example --------------------------------------------------------------------------------


def test_the_worked_split() -> None:
    """1,000,003 i32 on 2,560 DPUs of 11 tasklets: 390 elements each, 1,603 on the host."""
    step = granule([4])
    granules = 1_000_003 // step
    per_dpu = granules // 2560 * step
    assert per_dpu == 390
    assert 1_000_003 - 2560 * per_dpu == 1603
    chunk = round_up(-(-per_dpu // 11), step)
    assert chunk == 36
    assert [min(chunk, per_dpu - t * chunk) for t in range(11)] == [36] * 10 + [30]
