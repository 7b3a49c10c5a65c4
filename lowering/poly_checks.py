"""What `poly-verify` checks of a kernel."""

from __future__ import annotations

from cim_opt.dialects.poly import CoverAttr, KernelOp, MapAttr
from cim_opt.errors import UserError
from cim_opt.hardware.cim import CimMachine
from cim_opt.lowering import poly_schedules as schedules
from cim_opt.lowering.poly_covers import cover_of
from cim_opt.lowering.poly_kernels import loops_of, recognise_kernel
from cim_opt.lowering.poly_plans import bits_of, kernel_of
from cim_opt.mapping.cim_search import Tiled, tile_of
from cim_opt.polyhedral import cover as covers
from cim_opt.polyhedral import sets
from cim_opt.polyhedral.cover_text import cover_text
from cim_opt.polyhedral.isl_text import KernelText, kernel_text
from cim_opt.polyhedral.legality import check_coordinates, check_schedule

_MOST_PIECES = 16
"""Pieces of a cover's map that isl is asked about: the proof takes their square."""


class Checks:
    """All checks of one kernel, for a machine if one is given."""

    def __init__(self, op: KernelOp, machine: CimMachine | None) -> None:
        self._op = op
        self._found = recognise_kernel(op)
        self._kernel = kernel_of(self._found)
        self._macro = None if machine is None else (machine.rows, machine.columns_of(bits_of(op)))

    def run(self) -> list[str]:
        """What was checked. Raises UserError for the first thing that is wrong."""
        op = self._op
        done = [f"a kernel of {self._kernel.macs:,} products"]
        if op.reuse is not None:
            self._check_reuse()
            done.append("directions of reuse")
        if op.schedule is not None:
            self._check_schedule(op.schedule)
            done.append(f"the {schedules.stage_of(op)} schedule")
        if op.cover is not None:
            by_isl = self._check_cover(op.cover)
            images = len(op.cover.images)
            what = "1 image" if images == 1 else f"{images} images"
            done.append(f"a cover of {what}{' (by isl too)' * by_isl}")
        return done

    # -- reuse ---------------------------------------------------------------------------------

    def _check_reuse(self) -> None:
        extents, accesses = loops_of(self._op)
        names = ("input", "weight", "output")
        for name, access in zip(names, accesses, strict=True):
            for vector in schedules.vectors_of(self._op.reuse, name):
                if len(vector) != len(extents):
                    raise UserError(
                        f"a direction of {len(vector)} entries",
                        f"the kernel has {len(extents)} loops",
                        "let poly-reuse find the directions",
                    )
                moved = [
                    sum(a * b for a, b in zip(row, vector, strict=True)) for row in access.matrix
                ]
                if any(moved):
                    raise UserError(
                        f"the {name} moves by {moved} along {list(vector)}",
                        "along a direction of reuse it stays the same",
                        "let poly-reuse find the directions",
                    )

    # -- schedule ------------------------------------------------------------------------------

    def _check_schedule(self, schedule: MapAttr) -> None:
        op, text = self._op, self._text()
        stage = schedules.stage_of(op)
        if stage == "basis" and op.basis is None:
            raise UserError(
                "a schedule to basis[..] without a basis",
                "the basis says which coordinates are time, rows and columns",
                "let poly-affine-schedule make both",
            )
        results = sets.results_of(sets.parse_map(schedule.text.data))
        if stage in ("virtual", "macro"):
            times, rows = results - 2, 1
        elif stage == "basis":
            times, rows = (len(schedules.vectors_of(op.basis, role)) for role in ("time", "row"))
        else:
            times, rows = results, 0
        if min(times, results - times - rows) < 0:
            raise UserError(
                f"a schedule of {results} coordinates",
                f"its basis has {times} times and {rows} rows"
                if stage == "basis"
                else f"{stage}[..] ends in a row and a column",
            )
        macro = self._macro if stage == "macro" else None
        check_coordinates(text, schedule.text.data, times, rows, macro)
        self._check_described(schedule, stage)

    def _text(self) -> KernelText:
        """The domain and accesses of the kernel, as they are written."""
        texts = [attr.text.data for attr in self._op.accesses]
        first, second = reversed(texts[:2]) if self._found.swapped else texts[:2]
        return KernelText(self._op.domain.text.data, first, texts[2], second)

    def _check_described(self, schedule: MapAttr, stage: schedules.Stage) -> None:
        """The schedule is the one that splits and basis describe."""
        if stage in ("none", "other") or (stage == "macro" and self._macro is None):
            return
        op, kernel = self._op, self._kernel
        splits = schedules.splits_of(op, kernel)
        if splits is None:
            raise UserError(
                f"a schedule to {stage}[..] without splits",
                "splits say what its coordinates are",
                "let poly-pretile or poly-affine-schedule make both",
            )
        expected = schedules.split_map(op, self._found, splits)
        if stage != "split":
            described = schedules.schedule_of(op, kernel)
            steps = [schedules.basis_map(described)]
            steps += [schedules.virtual_map(described)] * (stage != "basis")
            if stage == "macro" and self._macro is not None:
                steps.append(schedules.macro_map(described, *self._macro))
            for step in steps:
                expected = schedules.then(op, expected, step)
        if not sets.equal_on(self._op.domain.text.data, schedule.text.data, expected.text.data):
            raise UserError(
                f"the schedule {schedule.text.data}",
                f"splits and basis describe {expected.text.data}",
                "let the passes poly-* make all three",
            )

    # -- cover ---------------------------------------------------------------------------------

    def _check_cover(self, attr: CoverAttr) -> bool:
        """Whether isl was asked, too."""
        rank = attr.lattice.type.get_shape()[0]
        if rank != self._kernel.rank:
            raise UserError(f"a cover over {rank} axes", f"the kernel has {self._kernel.rank} axes")
        tiled = cover_of(attr, self._kernel)
        tile = tile_of(self._kernel, tiled.channels)
        rows, columns = self._macro or (None, None)
        covers.check(tiled.cover, tile, rows, columns)
        self._check_of_schedule(tiled)
        text = cover_text(tiled.cover, tile)
        if text.count("->") > _MOST_PIECES:
            return False
        limits = self._macro or _sizes(tiled)
        check_schedule(kernel_text(tile), text, *limits)
        return True

    def _check_of_schedule(self, tiled: Tiled) -> None:
        """After poly-posttile the cover is that of the schedule."""
        if self._macro is None or schedules.stage_of(self._op) != "macro":
            return
        expected = schedules.schedule_of(self._op, self._kernel).tiled(*self._macro)
        if tiled != expected:
            raise UserError(
                "a cover that is not that of the schedule",
                "poly-posttile makes both",
                "leave out the schedule, or choose no other cover after it",
            )


def _sizes(tiled: Tiled) -> tuple[int, int]:
    """Rows and columns of the largest images."""
    images = tiled.cover.images
    return max(len(image.rows) for image in images), max(len(image.columns) for image in images)
