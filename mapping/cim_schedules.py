"""Affine schedules of whole kernels for a macro: tiles of channels, and the parts of the axes.

    found = best_schedule(MacKernel(1, 2, 1, (Axis(8, 3),)), 32, 8)
    found.splits()              # {"o0": (2, 4)}
    found.basis().columns       # ((1, 0, 0, 0), (0, 0, 1, -1)) over the levels oc, o0.0, o0.1, k0
    found.tiled(32, 8)          # the cover that macros apply

A step takes one tile of output channels as columns and one of input channels as rows; further
tiles are steps of their own. Loops of one iteration are left out of levels and vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from cim_opt.mapping.cim_placement import place
from cim_opt.mapping.cim_plan import steps_text
from cim_opt.mapping.cim_search import Tiled, tile_of
from cim_opt.polyhedral.affine_basis import ANY, Basis, Role, Rules, Vector
from cim_opt.polyhedral.affine_cover import to_cover
from cim_opt.polyhedral.affine_part import Part
from cim_opt.polyhedral.affine_schedule import AffineSchedule, images_of, steps_of
from cim_opt.polyhedral.affine_search import search
from cim_opt.polyhedral.bounds import lower_bound, utilisation
from cim_opt.polyhedral.cover import Cover
from cim_opt.polyhedral.isl_text import loop_names
from cim_opt.polyhedral.kernel import MacKernel
from cim_opt.polyhedral.nest import Factors

Splits = Mapping[str, Factors]
"""Levels of the loops that are split, outermost first, by their names in `loop_names`."""

_TRIED = 16
"""Schedules with the fewest steps that are looked at for one that code can be made for."""

_MOST_IMAGES = 256
"""Sets of weights of one tile; deeper kernels are cut into tiles of input channels."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a loop: `scale` is what a step of it adds to the loop."""

    loop: str
    size: int
    scale: int


def extents_of(kernel: MacKernel) -> dict[str, int]:
    """Iterations of the loops g, oc, ic, o0 .., k0 .."""
    sizes = (kernel.groups, kernel.out_channels, kernel.in_channels)
    sizes += (*kernel.output_shape, *kernel.tap_shape)
    return dict(zip(loop_names(kernel), sizes, strict=True))


def levels_of(kernel: MacKernel, splits: Splits) -> tuple[Level, ...]:
    """The levels of all loops that iterate, in their order."""
    found: list[Level] = []
    for loop, extent in extents_of(kernel).items():
        scale = 1
        levels: list[Level] = []
        for size in reversed(splits.get(loop, (extent,))):
            levels.append(Level(loop, size, scale))
            scale *= size
        found += [level for level in reversed(levels) if extent > 1]
    return tuple(found)


def level_names(kernel: MacKernel, splits: Splits) -> tuple[str, ...]:
    """Names of all levels: the loop's, with .0, .1 .. behind it when there are several."""
    levels = levels_of(kernel, splits)
    loops = [level.loop for level in levels]
    return tuple(
        f"{loop}.{place_ - loops.index(loop)}" if loop in splits else loop
        for place_, loop in enumerate(loops)
    )


@dataclass(frozen=True)
class Schedule:
    """An affine schedule of a kernel: `channels` are the (output, input) channels of a tile."""

    kernel: MacKernel
    channels: tuple[int, int]
    parts: tuple[Part, ...]

    @cached_property
    def tile(self) -> MacKernel:
        """The kernel of one tile of channels."""
        return tile_of(self.kernel, self.channels)

    @property
    def tiles(self) -> int:
        """Tiles of channels of a group."""
        outputs = -(-self.kernel.out_channels // self.channels[0])
        return outputs * -(-self.kernel.in_channels // self.channels[1])

    def on(self, rows: int, columns: int) -> AffineSchedule:
        """The schedule of a tile on a macro of `rows` by `columns` weights."""
        sizes = rows, columns
        steps, images = (f(self.tile, self.parts, *sizes) for f in (steps_of, images_of))
        return AffineSchedule(self.tile, self.parts, rows, columns, steps, images)

    def tiled(self, rows: int, columns: int) -> Tiled:
        """The cover of a tile."""
        cover = to_cover(self.on(rows, columns), self.tile, rows, columns)
        return Tiled(cover, self.channels)

    def is_placed(self, rows: int, columns: int) -> bool:
        """Whether code can be made for it: its sums lie in one order, in the macro's columns."""
        return _has_code(self.tiled(rows, columns).cover, self.tile, columns)

    def describe(self, rows: int, columns: int) -> str:
        """Macro steps, sets of weights, use, and the lower bound on steps."""
        tile, bound = self.on(rows, columns), lower_bound(self.kernel, rows, columns)
        steps, images = self.tiles * tile.steps, self.tiles * tile.images
        sets = "1 set" if images == 1 else f"{images:,} sets"
        return (
            f"{steps_text(steps)} (at least {bound.steps:,}), {sets} of weights, "
            f"{utilisation(self.kernel, rows, columns, steps):.1%} of the cells used"
        )

    def splits(self) -> dict[str, Factors]:
        """The loops of several levels."""
        kernel = self.kernel
        loops: dict[str, Factors] = {}
        counts = (kernel.out_channels, kernel.in_channels)
        for name, count, share in zip(("oc", "ic"), counts, self.channels, strict=True):
            loops[name] = (-(-count // share), share) if 1 < share < count else (count,)
        loops |= {f"o{axis}": part.factors[0] for axis, part in enumerate(self.parts)}
        loops |= {f"k{axis}": part.factors[1] for axis, part in enumerate(self.parts)}
        return {name: factors for name, factors in loops.items() if len(factors) > 1}

    def basis(self) -> Basis:
        """The vectors over all levels: those of channels first, then axis by axis."""
        levels = levels_of(self.kernel, self.splits())
        loops = [level.loop for level in levels]
        vectors: list[Vector] = []
        for place_, level in enumerate(levels):
            if level.loop in ("g", "oc", "ic"):
                entries = tuple(int(i == place_) for i in range(len(levels)))
                vectors.append(Vector(entries, self._role(level)))
        for axis, part in enumerate(self.parts):
            names = [f"o{axis}"] * len(part.factors[0]) + [f"k{axis}"] * len(part.factors[1])
            for vector in part.basis:
                entries = [0] * len(levels)
                for loop in (f"o{axis}", f"k{axis}"):
                    values = [v for n, v in zip(names, vector.entries, strict=True) if n == loop]
                    if loop in loops:
                        start = loops.index(loop)
                        entries[start : start + len(values)] = values
                vectors.append(Vector(tuple(entries), vector.role))
        return tuple(vectors)

    def _role(self, level: Level) -> Role:
        """What a level of channels or groups becomes: its tile is columns or rows."""
        if level.loop == "g" or level.scale > 1:
            return "time"
        share = self.channels[0 if level.loop == "oc" else 1]
        if share == 1:
            return "time"
        return "column" if level.loop == "oc" else "row"


def schedule_with(kernel: MacKernel, splits: Splits, basis: Sequence[Vector]) -> Schedule:
    """The schedule that these levels and vectors describe; vectors of a role count in order.

    Raises ValueError when they describe none: levels that do not hold a loop, vectors that join
    axes or channels, or that are no basis.
    """
    levels = levels_of(kernel, splits)
    axes: list[list[Vector]] = [[] for _ in kernel.axes]
    channels = [1, 1]
    for vector in basis:
        where = _loops_along(vector, levels)
        if where[0] in ("g", "oc", "ic"):
            _read_channels(vector, levels, channels)
            continue
        axis = int(where[0][1:])
        if not set(where) <= {f"o{axis}", f"k{axis}"}:
            raise ValueError(f"a vector along {', '.join(where)}, which are no axis")
        axes[axis].append(vector)
    if len(basis) != len(levels):
        raise ValueError(f"{len(basis)} vectors for {len(levels)} levels")
    parts = tuple(_part(kernel, axis, splits, levels, axes[axis]) for axis in range(kernel.rank))
    return Schedule(kernel, (channels[0], channels[1]), parts)


def _loops_along(vector: Vector, levels: Sequence[Level]) -> list[str]:
    if len(vector.entries) != len(levels):
        raise ValueError(f"a vector of {len(vector.entries)} entries for {len(levels)} levels")
    along = [lev.loop for lev, entry in zip(levels, vector.entries, strict=True) if entry]
    if not along:
        raise ValueError("a vector of zeros")
    return along


def _read_channels(vector: Vector, levels: Sequence[Level], channels: list[int]) -> None:
    """Notes the tile when the innermost level of channels becomes columns or rows."""
    place_ = next(i for i, entry in enumerate(vector.entries) if entry)
    level = levels[place_]
    if vector.entries[place_] != 1 or sum(map(bool, vector.entries)) > 1:
        raise ValueError(f"a skewed vector along {level.loop}; only positions and taps are skewed")
    if vector.role == "time":
        return
    wanted = {"oc": "column", "ic": "row"}.get(level.loop)
    if vector.role != wanted or level.scale > 1:
        raise ValueError(f"a level of {level.loop} as {vector.role}s")
    channels[0 if level.loop == "oc" else 1] = level.size


def _part(
    kernel: MacKernel,
    axis: int,
    splits: Splits,
    levels: Sequence[Level],
    vectors: Sequence[Vector],
) -> Part:
    extents = kernel.axes[axis].outputs, kernel.axes[axis].taps
    factors: list[Factors] = []
    for loop, extent in zip((f"o{axis}", f"k{axis}"), extents, strict=True):
        factors.append(splits.get(loop, (extent,)))
    basis: list[Vector] = []
    for vector in vectors:
        entries: list[int] = []
        for loop, sizes in zip((f"o{axis}", f"k{axis}"), factors, strict=True):
            mine = [v for lev, v in zip(levels, vector.entries, strict=True) if lev.loop == loop]
            entries += mine or [0] * len(sizes)
        basis.append(Vector(tuple(entries), vector.role))
    return Part(extents, (factors[0], factors[1]), tuple(basis))


# -- the choice ------------------------------------------------------------------------------------


def best_schedule(
    kernel: MacKernel, rows: int, columns: int, rules: Rules = ANY, splits: Splits | None = None
) -> Schedule | None:
    """The schedule with the fewest macro steps, then the fewest sets of weights.

    Of those that code can be made for, if there is one. With `splits` only among bases of these
    levels; None when the rules leave none.
    """
    rules = replace(rules, one_tile=True)
    found: list[tuple[tuple[object, ...], Schedule]] = []
    for channels in _channel_tiles(kernel, rows, columns, splits):
        choice = _best_of_tile(kernel, channels, (rows, columns), rules, splits)
        if choice is not None:
            placed, best, schedule = choice
            tiles = schedule.tiles
            rank = (not placed, tiles * best.steps, tiles * best.images, -channels[0])
            found.append((rank, schedule))
    return min(found, key=lambda entry: entry[0])[1] if found else None


def _best_of_tile(
    kernel: MacKernel,
    channels: tuple[int, int],
    macro: tuple[int, int],
    rules: Rules,
    splits: Splits | None,
) -> tuple[bool, AffineSchedule, Schedule] | None:
    """Whether code can be made for it, and the best schedule of a tile."""
    tile = tile_of(kernel, channels)
    levels = None if splits is None else _axis_levels(kernel, splits)
    first: AffineSchedule | None = None
    for allowed in (
        rules,
        replace(rules, blocks=True),
        replace(rules, pretile=False, affine=False),
    ):
        for schedule in search(tile, *macro, allowed, _TRIED, levels):
            first = first or schedule
            if _has_code(to_cover(schedule, tile, *macro), tile, macro[1]):
                return True, schedule, Schedule(kernel, channels, schedule.parts)
    return None if first is None else (False, first, Schedule(kernel, channels, first.parts))


def _has_code(cover: Cover, tile: MacKernel, columns: int) -> bool:
    """Whether there is an order for the sums of all steps; runs that overlap fill the columns."""
    placement = place(cover, tile)
    if placement is None:
        return False
    used = len(placement.columns)
    return used <= columns if placement.overlap == 1 else used == columns


def _axis_levels(kernel: MacKernel, splits: Splits) -> list[tuple[Factors, Factors]]:
    extents = extents_of(kernel)
    chosen = {name: splits.get(name, (extent,)) for name, extent in extents.items()}
    return [(chosen[f"o{axis}"], chosen[f"k{axis}"]) for axis in range(kernel.rank)]


def _channel_tiles(
    kernel: MacKernel, rows: int, columns: int, splits: Splits | None
) -> list[tuple[int, int]]:
    """(output, input) channels of a tile to try, most first."""
    count = kernel.out_channels
    shares = {-(-count // tiles) for tiles in range(1, count + 1)}
    outputs = sorted({share for share in shares if share <= columns} | {1}, reverse=True)
    depth = _depth(kernel, rows)
    if splits is None:
        return [(share, depth) for share in outputs]
    fixed = {name: splits[name][-1] for name in ("oc", "ic") if name in splits}
    outputs = [fixed["oc"]] if "oc" in fixed else [n for n in outputs if n in (1, count)]
    return [(share, fixed.get("ic", kernel.in_channels)) for share in outputs]


def _depth(kernel: MacKernel, rows: int) -> int:
    """Input channels of a tile: whole macros of rows."""
    if kernel.depth <= rows * _MOST_IMAGES:
        return kernel.in_channels
    most = max(1, rows * _MOST_IMAGES // kernel.taps)
    return most // rows * rows or most
