"""The CIM machine files: figures, round trips, and one-line errors."""

import subprocess
import sys
from pathlib import Path

import pytest

from cim_opt.errors import UserError
from cim_opt.hardware.cim import MACHINE_NAMES, MEMORIES, CimMachine, load_machine


@pytest.mark.parametrize("name", MACHINE_NAMES)
def test_shipped_machines_load(name: str) -> None:
    machine = load_machine(name)
    assert machine.name == name
    assert f"cim-{machine.rows}x{machine.bit_columns}-{machine.macros}" == name
    assert (machine.weight_bits, machine.columns, machine.weight_rows) == (8, 8, 1)
    assert (machine.simd_lanes, machine.clock_ns) == (32, 2.0)


def test_sizes_and_widths_of_the_memories() -> None:
    machine = load_machine("cim-32x64-8")
    sizes = [machine.capacity(memory) for memory in MEMORIES]
    assert sizes == [32 << 20, 256 << 10, 256 << 10, 1 << 10, 4 << 10, 8 * 256]
    assert [machine.width(memory) for memory in MEMORIES] == [64, 128, 128, 128, 128, 8]
    assert load_machine("cim-64x64-1").capacity("macro") == 512
    assert machine.seconds(500_000) == pytest.approx(1e-3)
    for ask in (machine.capacity, machine.width):
        with pytest.raises(UserError, match="unknown memory 'dram'; the memories are global"):
            ask("dram")


def test_columns_follow_the_width_of_the_weights() -> None:
    machine = load_machine("cim-64x64-8")
    assert [machine.columns_of(bits) for bits in (4, 8, 16)] == [16, 8, 4]
    with pytest.raises(UserError, match=r"weights of 12 bits; .* to 4, 8, 16 bits; widen"):
        machine.columns_of(12)


@pytest.mark.parametrize("name", MACHINE_NAMES)
def test_dictionary_round_trip(name: str) -> None:
    machine = load_machine(name)
    values = machine.to_dict()
    assert all(isinstance(value, str | int | float | list) for value in values.values())
    assert CimMachine.from_dict(values) == machine


def test_every_figure_has_a_source() -> None:
    text = (Path(__file__).parent.parent / "hardware" / "cim-32x64-8.toml").read_text()
    source = ""
    for line in text.splitlines():
        if line.startswith("#"):
            source = line if "[" in line or source == "" else source + line
        elif "=" in line and not line.startswith("name"):
            assert "[" in source, line


def test_file_overrides_its_base(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('base = "cim-64x64-1"\nname = "mine"\nmacros = 16\nclock_ns = 1\n')
    machine = load_machine(str(file))
    assert (machine.name, machine.rows, machine.macros, machine.clock_ns) == ("mine", 64, 16, 1.0)
    assert isinstance(machine.clock_ns, float)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('base = "cim-32x64-8"\nmacro = 3\n', "unknown key 'macro'; nearest: macros"),
        ('base = "cim-32x32-8"\n', "unknown machine 'cim-32x32-8'; nearest: cim-32x64-8"),
        ('base = "cim-32x64-8"\nmacros = 0\n', "macros is 0; it must be more than 0"),
        ('base = "cim-32x64-8"\nrows = 32.5\n', "rows is 32.5; it must be a whole number"),
        ('base = "cim-32x64-8"\nmvm_drain_cycles = -1\n', "is -1; it must be 0 or more"),
        ('base = "cim-32x64-8"\nstrided_transfers = 1\n', "is 1; it must be true or false"),
        ('base = "cim-32x64-8"\nfront_end = "ooo"\n', "'ooo'; the front ends are queue, stall"),
        ('base = "cim-32x64-8"\nweight_bits = 12\n', "weight_bits is 12; bit columns are joined"),
        ('base = "cim-32x64-8"\nbit_columns = 56\n', "bit_columns is 56; weights take up to 16"),
        (
            'base = "cim-32x64-8"\ninput_register_bytes = 128\n',
            "input_register_bytes is 128; one step of all macros needs 256",
        ),
        (
            'base = "cim-32x64-8"\nmacros = 65\ninput_register_bytes = 4096\n',
            "output_register_bytes is 4096; one step of all macros needs 4160",
        ),
        ("macros = 3\n", "no value for 'name'"),
    ],
)
def test_wrong_files_are_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    with pytest.raises(UserError) as error:
        load_machine(str(file))
    assert message in error.value.message()
    assert "\n" not in str(error.value)


def test_import_is_light() -> None:
    code = (
        "import sys, cim_opt.cost.cim_timing, cim_opt.hardware.cim as h;"
        "h.load_machine('cim-32x64-1');"
        "sys.exit(any(m in sys.modules for m in ('numpy', 'xdsl', 'islpy', 'z3')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
