"""The baseline of `cim-bench pum`: its formula and switches, on numbers worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cim_opt.hardware.simdram import load_machine
from cim_opt.tools import bench_pum, cim_bench, pum_baseline
from cim_opt.tools.pum_baseline import (
    MOVE_IN_MAT_NS,
    MOVE_TO_NEXT_MAT_NS,
    Switches,
    baseline,
    host_reduction,
    reduction_in_mats,
)
from cim_opt.tools.pum_kernels import KERNELS
from cim_opt.tools.pum_stages import Stage

W = 65536
MUL = 11 * 32 * 32 - 5 * 32 - 1
COMMAND = 49e-9
MACHINE = load_machine("simdram-1")


def stage(loops: int, trip: int, **fields: Any) -> Stage:
    """Sums of products of 32 bits, of which only the baseline is asked."""
    fields.setdefault("body", (("mul", 32),))
    fields.setdefault("reduces", 32)
    return Stage("s", lambda: pytest.fail("not built"), loops, trip, **fields)


def measured(which: Stage, **switches: Any) -> pum_baseline.Baseline:
    return baseline([which], MACHINE, Switches(**switches))


def test_the_ideal() -> None:
    """Two loops of 65,537 rounds fill two rows each."""
    total = measured(stage(2, W + 1, body=(("mul", 32), ("add", 8)), times=3))
    assert total.commands == 3 * 2 * 2 * (MUL + 65)
    assert total.used == pytest.approx(total.commands * (W + 1) / (2 * W))
    assert total.seconds == total.compute == pytest.approx(total.commands * COMMAND)


@pytest.mark.parametrize(
    ("operation", "commands"), [("add", 257), ("sub", 257), ("mul", 11_103), ("div_u", 8_832)]
)
def test_operations_have_the_published_counts(operation: str, commands: int) -> None:
    assert measured(stage(1, 1, body=((operation, 32),))).commands == commands


def test_sums_on_the_host() -> None:
    """32,000 lanes of 32 bits: 128 kB in 6.7 us and 32,000 additions in 32 us, 7 % of a MUL."""
    reading = 32_000 * 4 / MACHINE.bandwidth
    assert reading == pytest.approx(6.7e-6, rel=0.01)
    seconds = host_reduction(32_000, 32, MACHINE)
    assert seconds == pytest.approx(6.667e-6 + 32e-6, rel=1e-4)
    assert seconds / (MUL * COMMAND) == pytest.approx(0.07, abs=0.002)
    total = measured(stage(1000, 32_000), reduction="host")
    assert total.reduction == pytest.approx(1000 * seconds)
    assert total.seconds == pytest.approx(total.compute + total.reduction)
    assert measured(stage(1000, 32_000, reduces=0), reduction="host").reduction == 0


def test_sums_in_mats() -> None:
    """63 mats: 62 hops of 254.6 us, 440 us within the last mat, 7 additions: about 16 ms."""
    hop, within = 512 * 32 // 4, 508 * 32 // 4
    assert (hop, within) == (4096, 4064)
    hop_ns, within_ns = hop * MOVE_TO_NEXT_MAT_NS, within * MOVE_IN_MAT_NS
    assert hop_ns == pytest.approx(254.6e3, rel=1e-4)
    assert within_ns == pytest.approx(440.2e3, rel=1e-4)
    seconds = reduction_in_mats(32_000, 32, MACHINE)
    assert seconds == pytest.approx(62 * 254.607e-6 + 440.212e-6 + 7 * 12.593e-6, rel=1e-5)
    assert seconds == pytest.approx(16.3e-3, rel=0.01)
    assert seconds / (MUL * COMMAND) == pytest.approx(30, rel=0.01)
    assert measured(stage(5, 32_000), reduction="inmat").reduction == pytest.approx(5 * seconds)
    # One mat has no hops; a second row is added first.
    one = reduction_in_mats(512, 32, MACHINE)
    assert one == pytest.approx(440.212e-6 + 7 * 12.593e-6, rel=1e-5)
    two_rows = reduction_in_mats(W + 1, 32, MACHINE)
    assert two_rows - reduction_in_mats(W, 32, MACHINE) == pytest.approx(12.593e-6)


@pytest.mark.parametrize(
    ("trip", "together"), [(32_000, 2), (16_000, 4), (10_000, 6), (W, 1), (W + 1, 1), (4_000, 8)]
)
def test_loops_side_by_side_in_mats(trip: int, together: int) -> None:
    """63, 32, 20 and 8 of 128 mats, 8 engines; a whole row takes all mats."""
    alone, packed = stage(48, trip), measured(stage(48, trip), mats="on")
    assert measured(alone).commands == packed.commands * together
    assert packed.used == pytest.approx(measured(alone).used)
    # A last run that has nothing beside it takes as long.
    assert measured(stage(49, trip), mats="on").commands == (
        packed.commands + measured(stage(1, trip)).commands
    )


def test_mats_recover_most_of_the_mapping() -> None:
    """2, 4 and 6 side by side, where the mapping gives 2.05, 4.1 and 6.55."""
    for trip, gain in ((32_000, 2.05), (16_000, 4.1), (10_000, 6.55)):
        recovered = measured(stage(48, trip)).seconds / measured(stage(48, trip), mats="on").seconds
        assert 0.9 * gain < recovered < gain == pytest.approx(W / trip, rel=2e-3)


def test_runs_that_depend_on_each_other_are_not_side_by_side() -> None:
    chain = measured(stage(1, 4_000, times=10), mats="on")
    assert chain.commands == 10 * MUL
    # Batches of 9 and 1: two and one.
    assert measured(stage(1, 4_000, times=10, batches=(9, 1)), mats="on").commands == 3 * MUL
    assert measured(stage(1, 4_000, times=10, batches=(9, 1))).commands == 10 * MUL


def test_mats_sum_side_by_side() -> None:
    alone = measured(stage(48, 10_000), reduction="inmat")
    packed = measured(stage(48, 10_000), reduction="inmat", mats="on")
    assert alone.reduction == pytest.approx(6 * packed.reduction)


def test_the_released_tail() -> None:
    """Loops shorter than a row are the host's: a product and a sum a round, 1 ns each."""
    short = measured(stage(10, 32_000), tail="released")
    assert (short.commands, short.compute, short.used) == (0, 0, 0)
    assert short.seconds == short.host == pytest.approx(10 * 32_000 * 2e-9)
    longer = measured(stage(10, 2 * W + 5), tail="released")
    assert longer.commands == 10 * 2 * MUL == longer.used
    assert longer.host == pytest.approx(10 * 5 * 2e-9)
    assert measured(stage(1, 5, reduces=0), tail="released").host == pytest.approx(5e-9)


def test_what_runs_on_the_host_is_summed_there() -> None:
    both = measured(stage(1, 2 * W + 5), tail="released", reduction="host")
    assert both.reduction == pytest.approx(host_reduction(2 * W, 32, MACHINE))
    assert measured(stage(1, 5), tail="released", reduction="inmat").reduction == 0


def test_released_compilers_give_the_matrix_kernels_no_work_in_dram() -> None:
    for name in ("2mm", "3mm", "gemm", "covariance", "pca", "doitgen", "kmeans"):
        kernel = KERNELS[name]
        for which in ("A", "B"):
            stages = kernel.stages(kernel.sizes[which])
            assert baseline(stages, MACHINE, Switches(tail="released")).commands == 0


def test_every_stage_of_a_sum_says_so() -> None:
    sums = {
        (name, stage.name)
        for name, kernel in KERNELS.items()
        for stage in kernel.stages(kernel.sizes["small"])
        if stage.reduces
    }
    assert ("gramschmidt", "norm") in sums and ("covariance", "means") in sums
    assert not {name for name, _ in sums} & {"fdtd-apml", "x264"}
    assert not {stage for _, stage in sums} & {"combination", "differences", "eliminate"}


# The command line.


def run(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    arguments = ("pum", "--only", "A heartwall", "--report", "json", *options)
    assert cim_bench.main(arguments) == 0
    return json.loads(capsys.readouterr().out)


def test_options_reach_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    plain = run(capsys)
    defaults = run(capsys, "--reduction", "free", "--tail", "ceil", "--mats", "off")
    assert plain == defaults
    assert plain["summary"]["switches"] == {"reduction": "free", "tail": "ceil", "mats": "off"}
    (ideal,) = plain["rows"]
    for option, value in (("reduction", "inmat"), ("tail", "released"), ("mats", "on")):
        table = run(capsys, f"--{option}", value)
        assert table["summary"]["switches"][option] == value
        (row,) = table["rows"]
        kernel = KERNELS["heartwall"]
        want = baseline(
            kernel.stages(kernel.sizes["A"]), MACHINE, replace(Switches(), **{option: value})
        )
        assert row["baseline_seconds"] == pytest.approx(want.seconds)
        # Only the baseline changes.
        assert row["compute_seconds"] == ideal["compute_seconds"]
        for column in bench_pum.COLUMNS:
            ours = ideal["baseline_seconds"] / ideal[column]
            assert row[column] == pytest.approx(want.seconds / ours)
    assert run(capsys, "--tail", "released")["rows"][0]["columns_baseline"] is None


def test_options_reach_other_processes(capsys: pytest.CaptureFixture[str]) -> None:
    table = run(capsys, "--mats", "on", "--jobs", "2")
    assert table == run(capsys, "--mats", "on")


@pytest.mark.parametrize(
    "arguments",
    [("--reduction", "cpu"), ("--tail", "floor"), ("--mats", "yes"), ("--mats",)],
)
def test_bad_values_are_bad_usage(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert cim_bench.main(("pum", *arguments)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"argument {arguments[0]}: " in printed.err


def test_other_tables_have_no_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    assert cim_bench.main(("start", "--mats", "on")) == 1
    assert capsys.readouterr().err == (
        "cim-bench: error: --mats with table start; it says what the baseline of table pum is; "
        "leave --mats out\n"
    )
