"""Machines as TOML files: one flat table of figures, with a base that it may start from.

What the machines of all targets share: reading, checking every figure, and writing a machine back
as a dictionary. A machine class is a frozen dataclass of numbers, names, and tuples of numbers.
"""

import difflib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import Field, asdict, dataclass, fields
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from cim_opt.errors import UserError

_FOLDER = Path(__file__).parent

Figures = dict[str, str | int | float | list[int] | list[float]]


MachineT = TypeVar("MachineT")


def figures_of(machine: Any) -> Figures:
    """The machine as a flat dictionary of scalars and lists, for an attribute or a file."""
    return {
        key: list(cast("tuple[float, ...]", value)) if isinstance(value, tuple) else value
        for key, value in asdict(machine).items()
    }


@dataclass(frozen=True)
class MachineFiles(Generic[MachineT]):
    """The machines of one target: their class, shipped names, and what a figure must be.

    `positive` names the figures that may not be 0; `check` raises UserError when figures do not
    fit together.
    """

    kind: type[MachineT]
    names: tuple[str, ...]
    positive: frozenset[str]
    check: Callable[[MachineT, str], None]

    def from_dict(self, values: Mapping[str, object], where: str) -> MachineT:
        """The machine that `figures_of` wrote, every value checked.

        `where` names the source in errors. Raises UserError on a missing or unknown key, a
        wrong type, a negative value, or figures that do not fit together.
        """
        known: dict[str, Field[Any]] = {f.name: f for f in fields(cast(Any, self.kind))}
        for key in values:
            if key not in known:
                raise _unknown("key", key, tuple(known), where)
        missing = [key for key in known if key not in values]
        if missing:
            raise UserError(
                f"{where}: no value for {missing[0]!r}",
                f"{len(missing)} of {len(known)} values are missing",
                f'add them or start from another machine with base = "{self.names[0]}"',
            )
        checked = {key: self._check(field, values[key], where) for key, field in known.items()}
        machine = self.kind(**cast("dict[str, Any]", checked))
        self.check(machine, where)
        return machine

    def load(self, name_or_path: str) -> MachineT:
        """A shipped machine by name, or one from a TOML file of the user (a path in .toml).

        Raises UserError when there is no such machine or file, or when a value makes no sense.
        """
        return self.from_dict(self._read(name_or_path, ()), _label(name_or_path))

    def _read(self, name_or_path: str, seen: tuple[str, ...]) -> dict[str, object]:
        """The values of one machine with those of its base below them."""
        path = self._find(name_or_path)
        if str(path) in seen:
            raise UserError(
                f"{name_or_path}: the machine is its own base",
                "a chain of bases must end",
                'remove one "base" line',
            )
        values = _parse(path, name_or_path)
        if "base" not in values:
            return values
        base = values.pop("base")
        if not isinstance(base, str):
            raise _wrong_type("base", "a machine name or a path in quotes", base, name_or_path)
        if base.endswith(".toml"):
            base = str(path.parent / base)
        return self._read(base, (*seen, str(path))) | values

    def _find(self, name_or_path: str) -> Path:
        if name_or_path.endswith(".toml"):
            path = Path(name_or_path)
            if not path.is_file():
                raise UserError(f"no machine file {name_or_path}", None, "check the path")
            return path.resolve()
        if name_or_path not in self.names:
            raise _unknown("machine", name_or_path, self.names, None)
        return _FOLDER / f"{name_or_path}.toml"

    def _check(self, field: "Field[Any]", value: object, where: str) -> object:
        """The value in the type of its field, or a UserError."""
        if field.type is str:
            if not isinstance(value, str) or not value:
                raise _wrong_type(field.name, "a name in quotes", value, where)
            return value
        if field.type is bool:
            if not isinstance(value, bool):
                raise _wrong_type(field.name, "true or false", value, where)
            return value
        if field.type in (int, float):
            return self._number(field.name, value, field.type is int, where)
        if not isinstance(value, list | tuple):
            raise _wrong_type(field.name, "a list of numbers", value, where)
        whole = field.type == tuple[int, ...]
        items = cast("list[object]", value)
        return tuple(self._number(field.name, item, whole, where) for item in items)

    def _number(self, key: str, value: object, whole: bool, where: str) -> int | float:
        want = "a whole number" if whole else "a number"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _wrong_type(key, want, value, where)
        if whole and not isinstance(value, int):
            raise _wrong_type(key, want, value, where)
        positive = key in self.positive
        # Written so that NaN fails too.
        if not (value > 0 if positive else value >= 0) or value == float("inf"):
            smallest = "more than 0" if positive else "0 or more"
            raise UserError(
                f"{where}: {key} is {value}", f"it must be {smallest}", "change the value"
            )
        return value if whole else float(value)


def _parse(path: Path, shown: str) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{shown}: cannot read the machine file", str(error)) from error
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{shown}: not a TOML file", str(error)) from error


def _label(name_or_path: str) -> str:
    return name_or_path if name_or_path.endswith(".toml") else f"machine {name_or_path}"


def _unknown(kind: str, got: str, known: tuple[str, ...], where: str | None) -> UserError:
    near = difflib.get_close_matches(got, known, n=3, cutoff=0.5) or list(known[:3])
    prefix = f"{where}: " if where else ""
    remedy = f"nearest: {', '.join(near)}"
    if kind == "machine":
        remedy += "; or give a path that ends in .toml"
    return UserError(f"{prefix}unknown {kind} {got!r}", None, remedy)


def _wrong_type(key: str, want: str, got: object, where: str) -> UserError:
    return UserError(f"{where}: {key} is {got!r}", f"it must be {want}", "change the value")
