"""The UPMEM machine files: figures, round trips, and one-line errors."""

import subprocess
import sys
from pathlib import Path

import pytest

from cim_opt.errors import UserError
from cim_opt.hardware.upmem import MACHINE_NAMES, UpmemMachine, load_machine


@pytest.mark.parametrize("name", MACHINE_NAMES)
def test_shipped_machines_load(name: str) -> None:
    machine = load_machine(name)
    assert machine.name == name
    assert machine.wram_bytes == 64 * 1024
    assert machine.mram_bytes == 64 * 1024 * 1024
    assert (machine.dma_min_bytes, machine.dma_max_bytes) == (8, 2048)


def test_sizes_and_clocks() -> None:
    big, small, one = (load_machine(name) for name in MACHINE_NAMES[:3])
    assert (big.dpus, small.dpus, one.dpus) == (2560, 640, 1)
    assert (big.clock_hz, small.clock_hz, one.clock_hz) == (350e6, 267e6, 350e6)
    assert big.ranks(2560) == 40
    assert big.ranks(65) == 2


def test_heap_is_what_a_real_program_has_left() -> None:
    # Measured on a decoded DPU program: 12 tasklets leave 52,832 bytes, 16 leave 48,732.
    machine = load_machine("upmem-2560")
    assert machine.wram_heap(12) == 52_832
    assert machine.wram_heap(16) == 48_732
    with pytest.raises(UserError, match="25 tasklets on upmem-2560") as error:
        machine.wram_heap(25)
    assert error.value.limit == "a DPU runs 1 to 24 tasklets"


@pytest.mark.parametrize("name", MACHINE_NAMES)
def test_dictionary_round_trip(name: str) -> None:
    machine = load_machine(name)
    values = machine.to_dict()
    assert all(isinstance(value, str | int | float | list) for value in values.values())
    assert UpmemMachine.from_dict(values) == machine


def test_every_figure_has_a_source() -> None:
    text = (Path(__file__).parent.parent / "hardware" / "upmem-2560.toml").read_text()
    source = ""
    for line in text.splitlines():
        if line.startswith("#"):
            source = line if "[" in line or source == "" else source + line
        elif "=" in line and not line.startswith("name"):
            assert "[" in source + line.partition("#")[2], line


def test_file_overrides_its_base(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('base = "upmem-640"\nname = "mine"\ndpus = 128\nclock_hz = 400000000\n')
    machine = load_machine(str(file))
    assert (machine.name, machine.dpus, machine.clock_hz) == ("mine", 128, 400e6)
    assert isinstance(machine.clock_hz, float)
    assert machine.push_dpus == load_machine("upmem-2560").push_dpus
    child = tmp_path / "child.toml"
    child.write_text('base = "mine.toml"\ndpus = 64\n')
    assert load_machine(str(child)).clock_hz == 400e6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('base = "upmem-2560"\ndpu = 3\n', "unknown key 'dpu'; nearest: dpus"),
        ('base = "upmem-2650"\n', "unknown machine 'upmem-2650'; nearest: upmem-2560"),
        ('base = "upmem-2560"\ndpus = "many"\n', "dpus is 'many'; it must be a whole number"),
        ('base = "upmem-2560"\ndpus = 2.5\n', "dpus is 2.5; it must be a whole number"),
        ('base = "upmem-2560"\ndpus = true\n', "dpus is True; it must be a whole number"),
        ('base = "upmem-2560"\nname = 7\n', "name is 7; it must be a name in quotes"),
        ('base = "upmem-2560"\nclock_hz = -1.0\n', "clock_hz is -1.0; it must be more than 0"),
        ('base = "upmem-2560"\nclock_hz = nan\n', "clock_hz is nan; it must be more than 0"),
        ('base = "upmem-2560"\nmutexes = -1\n', "mutexes is -1; it must be 0 or more"),
        ('base = "upmem-2560"\nlaunch_dpus = 1\n', "launch_dpus is 1; it must be a list"),
        ('base = "upmem-2560"\nlaunch_dpus = [4, 1, 2, 3, 5]\n', "it must rise from 1"),
        ('base = "upmem-2560"\nlaunch_dpus = [4, 8]\n', "launch_latency_s has 5 entries"),
        ('base = "upmem-2560"\ndma_max_bytes = 4\n', "dma_min_bytes is 8; dma_max_bytes is 4"),
        ('base = "upmem-2560"\nstack_bytes = 4096\n', "stacks of 24 tasklets do not fit"),
        (
            'base = "upmem-2560"\npull_bytes_per_second = [1, 1, 0, 1, 1, 1]\n',
            "pull_bytes_per_second holds 0.0; a bandwidth must be more than 0",
        ),
        (
            'base = "upmem-2560"\npush_large_bytes = 8\n',
            "push_full_speed_bytes is 65536; push_large_bytes is 8",
        ),
        ('base = "wrong.toml"\n', "the machine is its own base; a chain of bases must end"),
        ("base = 3\n", "base is 3; it must be a machine name"),
        ("dpus = 3\n", "no value for 'name'"),
        ("dpus = = 3\n", "not a TOML file"),
    ],
)
def test_wrong_files_are_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    with pytest.raises(UserError) as error:
        load_machine(str(file))
    assert message in error.value.message()
    assert "\n" not in str(error.value)


def test_unknown_names_and_missing_files() -> None:
    with pytest.raises(UserError, match="unknown machine 'upmem-2506'") as error:
        load_machine("upmem-2506")
    assert error.value.remedy is not None and "upmem-2560" in error.value.remedy
    with pytest.raises(UserError, match=r"no machine file nowhere\.toml"):
        load_machine("nowhere.toml")


def test_import_is_light() -> None:
    code = (
        "import sys, cim_opt.hardware.upmem as h; h.load_machine('upmem-1');"
        "sys.exit(any(m in sys.modules for m in ('numpy', 'xdsl', 'islpy', 'z3')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
