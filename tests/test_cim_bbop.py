"""bbop streams: printed from lowered programs, read again, executed; and what is refused."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from refusals import refusals_in
from simdram_lowering import SMALL, TILES, write_machine
from test_simdram_lowering import INTEGERS, lengths
from test_simdram_lowering_bodies import BODIES, CHAINS, histogram
from upmem_cells import OPERATIONS, program
from xdsl.context import Context

from cim_opt.errors import UserError
from cim_opt.lowering.translate_simdram_to_bbop import BbopTarget
from cim_opt.microprograms.library import LIBRARY_NAMES
from cim_opt.simulators.run import lower
from cim_opt.tools.bbop_host import random_inputs
from cim_opt.tools.bbop_machine import BbopMachine
from cim_opt.tools.bbop_stream import read_stream
from cim_opt.tools.cim_bbop import main
from cim_opt.tools.load_module import parse_text

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("machines")
    return [write_machine(folder, figures) for figures in (SMALL, TILES)]


def stream_of(text: str, machine: str, length: int, library: str = "cim-opt") -> str:
    """The stream of @main, whose first argument has that length if it is not known."""
    options = {"machine": machine, "library": library}
    module = lower(parse_text(text, "test.mlir"), "pattern-to-simdram", options)
    known = (length,) if "%a: tensor<?x" in text else ()
    out = io.StringIO()
    BbopTarget(lengths=known, library=library).emit(Context(), module, out)
    return out.getvalue()


def checked(stream: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What `cim-bbop check` says of a stream of that program; it finds nothing wrong."""
    (tmp_path / "program.mlir").write_text(text)
    (tmp_path / "stream.bbop").write_text(stream)
    files = [str(tmp_path / "stream.bbop"), "--against", str(tmp_path / "program.mlir")]
    code = main(["check", *files])
    captured = capsys.readouterr()
    assert code == 0, captured.out + captured.err
    return captured.out


# Scans go through the host in between; so do filters, at the end.
DIRECT = [name for name in OPERATIONS if name in ("map", "window", "group", "window_group")]


@pytest.mark.parametrize("element", INTEGERS)
@pytest.mark.parametrize("operation", DIRECT)
def test_results_of_every_length(
    operation: str,
    element: str,
    machines: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = program(operation, element, None)
    for length in lengths(operation, False, (0, 1, 64, 65, 211)):
        for machine, library in zip(machines, LIBRARY_NAMES, strict=True):
            stream = stream_of(text, machine, length, library)
            said = checked(stream, text, tmp_path, capsys)
            assert "equal to the reference: outputs 0" in said


@pytest.mark.parametrize("name", [name for name in BODIES if ", %" not in BODIES[name][:40]])
def test_bodies(
    name: str, machines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for library in LIBRARY_NAMES:
        stream = stream_of(BODIES[name], machines[0], 70, library)
        said = checked(stream, BODIES[name], tmp_path, capsys)
        assert "equal to the reference: outputs 0" in said


@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name not in DIRECT])
def test_what_the_host_finishes(
    operation: str, machines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (length,) = lengths(operation, False, (130,))
    text = program(operation, "i16", None)
    stream = stream_of(text, machines[0], length)
    if operation == "scan":
        host = next(n for n, line in enumerate(stream.splitlines(), 1) if "pattern.scan" in line)
        with pytest.raises(UserError, match=f"'h' is made by a host step, .* in line {host}; "):
            run(stream)
        return
    assert "output 0 is finished by the host" in checked(stream, text, tmp_path, capsys)


def test_a_table_in_batches(
    machines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = histogram(40)
    said = checked(stream_of(text, machines[0], 130), text, tmp_path, capsys)
    assert "output 0 is finished by the host (tensor.insert of " in said


def test_the_report_counts_what_the_stream_does(
    machines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "add.bbop"
    path.write_text(stream_of(program("map", "i32", None), machines[0], 130))
    assert main(["check", str(path), "--report", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    # Three rounds of an addition of 32 bits: 7 commands a bit.
    assert report["counts"]["bbops"] == 3
    assert report["counts"]["aap"] + report["counts"]["ap"] == 3 * 7 * 32
    assert report["counts"]["transposed_rows"] == report["counts"]["read_rows"] == 3 * 32


def test_given_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.bbop"
    path.write_text(HEAD + "input a 3 i8\noutput 0 a\n")
    np.save(tmp_path / "a.npy", np.array([1, 2, 3], np.int8))
    np.save(tmp_path / "wrong.npy", np.array([1, 2], np.int8))
    assert main(["check", str(path), "--input", f"a={tmp_path}/a.npy"]) == 0
    assert main(["check", str(path), "--input", f"a={tmp_path}/wrong.npy"]) == 1
    assert "has int8 of shape (2,); 'a' takes int8 of shape (3,)" in capsys.readouterr().err
    assert main(["check", str(path), "--input", "b=x"]) == 1
    assert "the inputs are a" in capsys.readouterr().err
    assert main(["check", str(path), "--input", f"a={path}"]) == 1
    assert "it is no .npy file" in capsys.readouterr().err


def test_a_stream_of_another_program_differs(
    machines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = stream_of(CHAINS["windows of windows"], machines[0], 70)
    (tmp_path / "program.mlir").write_text(
        CHAINS["windows of windows"].replace("arith.subi %q, %p", "arith.addi %q, %p")
    )
    (tmp_path / "stream.bbop").write_text(stream)
    files = [str(tmp_path / "stream.bbop"), "--against", str(tmp_path / "program.mlir")]
    assert main(["check", *files]) == 1
    assert "output 0: element 0 is " in capsys.readouterr().out


# -- refusals ------------------------------------------------------------------------------------

HEAD = "bbop 1\nmachine columns 64 subarrays 1 rows 100\nlibrary cim-opt\nfunction f\n"
A = "input a 8 i8\n"  # line 5
X = A + "trsp_init D0 a[0] stride 1 N 8 n 8\n"  # line 6
HELP = "; see `cim-bbop --help`"

WRONG: dict[str, tuple[str, str]] = {
    "an unknown statement": ("send D0\n", "5:1: unknown statement 'send'; see"),
    "an unknown library": (
        HEAD.replace("cim-opt", "mine"),
        "unknown library of microprograms 'mine'",
    ),
    "no head": ("", "1:1: the stream ends too early; it starts with bbop, machine, library"),
    "another head": ("loop", "1:1: got 'loop'; here comes 'bbop'"),
    "another version": (HEAD.replace("bbop 1", "bbop 2"), "1:6: version 2; the version is 1"),
    "no columns": (HEAD.replace("64", "0"), "2:17: 0 columns; a machine has 1 or more"),
    "a line too long": (A.replace("i8", "i8 9"), "5:14: got '9'; the statement ends before"),
    "a line too short": ("input a 8\n", "5:10: the line ends too early; here comes i1 to i64"),
    "a bracket missing": (
        A + "trsp_init D0 a[0 stride 1 N 8 n 8\n",
        "6:18: got 'stride'; here comes ']'",
    ),
    "no row": (A + "trsp_init X a[0] stride 1 N 8 n 8\n", "6:11: got 'X'; here comes an object"),
    "too wide": (A + "trsp_init D0 a[0] stride 1 N 8 n 65\n", "6:34: 65 bits; objects have 1 to"),
    "a brace too many": ("}\n", "5:1: '}' without a loop; remove it"),
    "a loop without end": ("loop i 0 1 1 {\n", "5:1: the loop has no end; close it with '}'"),
    "a host step without name": ("host h i8\n", "5:10: the line ends too early; here comes '= '"),
    "an unknown name": ("output 0 b\n", "5:10: 'b' is not defined; define it before"),
    "a scalar for a vector": (
        "input k i8\ntrsp_init D0 k[0] stride 1 N 8 n 8\n",
        "6:14: 'k' is a scalar; a vector is needed",
    ),
    "a vector for a scalar": (A + "fill D0 a N 8 n 8\n", "6:9: 'a' is a vector; a number is"),
    "a division by 0": ("vector v (1 / 0) i8\n", "5:10: 1 / 0; divisors are 1 or more"),
    "a negative length": ("vector v -1 i8\n", "5:10: length -1; it is 0 or more"),
    "a stride of 0": (
        X + "vector v 8 i8\nread v[0] stride 0 D0 N 8 n 8\n",
        "8:18: stride 0; it is 1 or more",
    ),
    "an element out of range": (A + "scalar s i8 = a[8]\n", "6:15: a[8]; it has 8 elements"),
    "a copy of another size": (
        A + "vector v 9 i8 of a\n",
        "6:1: 'a' has 8 elements of int8; its copy has 9 of int8",
    ),
    "too many lanes": (A + "fill D0 1 N 65 n 8\n", "6:13: 65 lanes; the machine has 64"),
    "too many rows": ("fill D98 1 N 8 n 8\n", "5:1: rows 98 to 105; the machine has rows 0 to 99"),
    "no object": (X + "not D8 D9 N 8 n 8\n", "7:1: no object at D9; nothing was written there"),
    "an object that is overwritten": (
        X + "fill D7 0 N 8 n 1\nnot D8 D0 N 8 n 8\n",
        "8:1: no object at D0; nothing was written there, or it was overwritten since",
    ),
    "an object of another width": (
        X + "not D8 D0 N 8 n 4\n",
        "7:1: D0 read as 8 lanes of 4 bits; line 6 made it 8 lanes of 8 bits",
    ),
    "an object of other lanes": (
        X + "not D8 D0 N 7 n 8\n",
        "7:1: D0 read as 7 lanes of 8 bits; line 6 made it 8 lanes of 8 bits",
    ),
    "more bits than an element has": (
        A + "trsp_init D0 a[0] stride 1 N 8 n 9\n",
        "6:1: 9 bits of 'a'; its elements have 8",
    ),
    "other bits than an element has": (
        X + "vector v 8 i16\nread v[0] stride 1 D0 N 8 n 8\n",
        "8:1: 8 bits into 'v'; its elements have 16",
    ),
    "past the end": (
        X + "vector v 8 i8\nread v[1] stride 1 D0 N 8 n 8\n",
        "8:6: lanes go to v[8]; it has 8 elements",
    ),
    "an input that is written": (
        X + "read a[0] stride 1 D0 N 8 n 8\n",
        "7:6: 'a' is written; it is an input; read into a vector",
    ),
    "an extension to fewer bits": (
        X + "zext D8 D0 N 8 n 8 to 4\n",
        "7:1: zext from 8 to 4 bits; extensions are to more bits",
    ),
    "a shift by less than 0": (X + "shl_const D8 D0 N 8 n 8 by -1\n", "7:1: shift by -1; 0 or"),
    "no scratch rows": (
        X + "mul D8 D0 D0 N 8 n 8\n",
        "7:1: 'mul' without scratch rows; its microprogram needs 1; add 'scratch'",
    ),
    "scratch rows over an operand": (
        X + "mul D8 D0 D0 N 8 n 8 scratch 4\n",
        "7:1: scratch rows 4 to 4 of 'mul'; they lie over its operands or result",
    ),
    "a result over its operand": (
        X + "mul D0 D0 D0 N 8 n 8 scratch 8\n",
        "7:1: 'mul' cannot write its result over its operand; its microprogram still reads",
    ),
    "a result over half its operand": (
        X + "not D4 D0 N 8 n 8\n",
        "7:1: 'not' cannot write its result over its operand; its microprogram still reads",
    ),
    "a complemented object read as it is": (
        A + "trsp_init ~D0 a[0] stride 1 N 8 n 8\nnot D8 D0 N 8 n 8\n",
        "7:1: D0 read as it is; line 6 stored it complemented; call it ~D0",
    ),
    "an object read as if complemented": (
        X + "vector v 8 i8\nread v[0] stride 1 ~D0 N 8 n 8\n",
        "8:1: D0 read complemented; line 6 stored it as it is; call it D0",
    ),
    "a polarity without program": (
        X + "add ~D8 D0 D0 N 8 n 8\n",
        "7:1: bbop add of this polarity; no program has it; complement another object",
    ),
    "a complemented product of the other library": (
        HEAD.replace("cim-opt", "simdram") + X + "mul_scalar ~D8 D0 3 N 8 n 8\n",
        "7:1: microprogram mul_const: no complemented product in this library",
    ),
    "a complemented factor": (
        A + "trsp_init ~D0 a[0] stride 1 N 8 n 8\nmul_scalar D8 ~D0 3 N 8 n 8\n",
        "7:1: mul_scalar of a complemented object; its programs multiply plain ones; copy it to",
    ),
    "a host step between": (
        "host h i8 = pattern.reduce of v\nfill D0 h N 8 n 8\n",
        "6:9: 'h' is made by a host step, 'pattern.reduce of v' in line 5; the checker executes",
    ),
}


def run(stream: str) -> None:
    read = read_stream(stream, "s.bbop")
    BbopMachine(read, random_inputs(read, 0)).run()


@pytest.mark.parametrize("name", WRONG)
def test_refusal(name: str) -> None:
    text, message = WRONG[name]
    with pytest.raises(UserError) as info:
        run(text if name in WHOLE else HEAD + text)
    line = str(info.value).replace(" error: ", " ")
    wanted = message if "unknown library" in message else f"s.bbop:{message}"
    assert wanted in line


WHOLE = (
    *("an unknown library", "no head", "another head", "another version", "no columns"),
    "a complemented product of the other library",
)


def test_a_wrong_microprogram_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from cim_opt.dialects.simdram import Opcode
    from cim_opt.tools import bbop_machine

    def subtracts(mnemonic: str) -> Opcode:
        return Opcode.SUB

    monkeypatch.setattr(bbop_machine, "opcode_of", subtracts)
    original = bbop_machine.simdram_words.compute

    def added(opcode: Opcode, *rest: object) -> object:
        return original(Opcode.ADD, *rest)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(bbop_machine.simdram_words, "compute", added)
    with pytest.raises(UserError, match=r"7:1: error: 'add' gives .* in lane 0; its meaning is "):
        run(HEAD + X + "add D8 D0 D0 N 8 n 8\n")


def test_a_long_stream_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from cim_opt.tools import bbop_machine

    monkeypatch.setattr(bbop_machine, "MAX_COMMANDS", 20)
    with pytest.raises(UserError, match="7:1: error: more than 20 row commands; the checker is "):
        run(HEAD + X + "add D8 D0 D0 N 8 n 8\n")


def test_every_refusal_has_a_test() -> None:
    tested = [message for _, message in WRONG.values()] + ["more than  row commands"]
    tested += ["'add' gives in lane 0"]
    for name in ("bbop_host", "bbop_machine", "bbop_stream"):
        for pieces in refusals_in(ROOT / "tools" / f"{name}.py", ("UserError", "error")):
            words = [piece.strip() for piece in pieces if piece.strip()]
            assert any(all(word in line for word in words) for line in tested), words


# -- expand --------------------------------------------------------------------------------------


def expanded(capsys: pytest.CaptureFixture[str], *argv: str) -> list[str]:
    assert main(["expand", *argv]) == 0
    return [line for line in capsys.readouterr().out.splitlines() if not line.startswith("#")]


def test_the_commands_of_an_addition(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(expanded(capsys, "add", "32")) == 7 * 32
    assert len(expanded(capsys, "add", "32", "--library", "simdram")) == 8 * 32 + 1
    assert len(expanded(capsys, "add", "32", "--complemented", "a")) == 6 * 32 + 1
    lines = expanded(capsys, "add", "2", "--rows", "64,0,32")
    assert sum("<- D" in line for line in lines) >= 4
    assert sum(line.startswith("AAP D64 <-") for line in lines) == 1
    assert sum(line.startswith("AAP D65 <-") for line in lines) == 1
    assert not any("out[" in line or "a[" in line for line in lines)


@pytest.mark.parametrize(
    "argv",
    [
        ("fill", "8", "--value", "5"),
        ("mul_scalar", "8", "--value", "-3"),
        ("if_else", "8"),
        ("if_else", "8", "--complemented", "choice"),
        ("fill", "8", "--value", "5", "--complemented", "out"),
        ("zext", "8", "--to", "16"),
        ("shrs_const", "8", "--by", "3"),
        ("mul", "8", "--rows", "16,0,8,24"),
    ],
)
def test_other_expansions(argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert all(line.startswith(("AAP ", "AP ")) for line in expanded(capsys, *argv))


@pytest.mark.parametrize(
    "argv, message",
    [
        (("addd", "8"), "unknown bbop 'addd'; did you mean 'add'"),
        (("add", "65"), "microprogram add of 65 bits"),
        (("fill", "8"), "'fill' without --value; give it"),
        (("add", "8", "--by", "1"), "'add' with --by; leave it out"),
        (("trunc", "8", "--to", "9"), "trunc from 8 to 9 bits"),
        (
            ("add", "8", "--complemented", "a,c"),
            "--complemented a,c; 'add' may have a, b, out complemented; name some of these",
        ),
        (("add", "8", "--complemented", "out"), "bbop add of this polarity; no program has it"),
        (("add", "8", "--rows", "1,2"), "--rows 1,2; 'add' takes 3 row numbers: out, a, b"),
    ],
)
def test_wrong_expansions(
    argv: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["expand", *argv]) == 1
    assert message in capsys.readouterr().err


def test_bad_usage() -> None:
    assert main([]) == 2
    assert main(["check"]) == 2
    assert main(["--help"]) == 0


def test_files_that_are_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["check", str(tmp_path / "none")]) == 1
    assert "cannot read" in capsys.readouterr().err
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    assert main(["check", str(tmp_path / "bytes")]) == 1
    assert "is no stream; it is not text" in capsys.readouterr().err
    (tmp_path / "s").write_text(HEAD)
    assert main(["check", str(tmp_path / "s"), "--seed", "-1"]) == 1
    assert "a seed is 0 or more" in capsys.readouterr().err
