"""Table `upmem-accuracy`: points, predictions from the kernels' text, errors and choices."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cim_opt.dialects.upmem import KernelOp
from cim_opt.errors import UserError
from cim_opt.hardware.upmem import load_machine
from cim_opt.simulators.upmem_static import observe, static_counts
from cim_opt.tools import bench_upmem_accuracy as bench
from cim_opt.tools import cim_bench
from cim_opt.tools import upmem_micro_models as models
from cim_opt.tools.accuracy import choices, percent_errors, spearman
from cim_opt.tools.upmem_micro_kernels import MicroKernel
from cim_opt.tools.upmem_micro_models import MODELS, SAMPLE, kernel_of
from cim_opt.tools.upmem_points import read_points

MACHINE = load_machine("upmem-1")
PARAMETERS: dict[str, Any] = {
    "dtype": "uint32_t",
    "tasklets": 2,
    "blocks_per_tasklet": 4,
    "elems_per_block": 8,
}
POINT: dict[str, Any] = {"kernel": "vectorop", "parameters": PARAMETERS, "measured_ms": 0.5}


def kernel_with(body: str, tasklets: int) -> KernelOp:
    return kernel_of(MicroKernel(tasklets, {}, body))


def points_file(tmp_path: Path, content: Any, name: str = "mine.json") -> Path:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def refused(tmp_path: Path, content: Any) -> str:
    with pytest.raises(UserError) as caught:
        read_points(points_file(tmp_path, content), MODELS)
    return caught.value.message()


def with_parameters(**changes: Any) -> Any:
    return {"points": [POINT | {"parameters": PARAMETERS | changes}]}


# -- statistics ------------------------------------------------------------------------------------


def test_errors_are_relative_to_the_measurement() -> None:
    assert percent_errors([110.0, 90.0], [100.0, 120.0]) == pytest.approx([10.0, -25.0])


def test_spearman_is_of_ranks_with_ties() -> None:
    assert spearman([1, 2, 3, 9], [10, 11, 90, 91]) == pytest.approx(1.0)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1.0)
    # Ranks 0.5 0.5 2 against 0 1 2.
    assert spearman([5, 5, 6], [1, 2, 3]) == pytest.approx(np.sqrt(0.75))
    assert spearman([1.0, 1.0], [1.0, 2.0]) is None


def test_regret_is_of_the_predicted_best() -> None:
    found = choices(["a", "b", "a", "b", "c"], [1, 9, 2, 8, 1], [10, 20, 8, 20, 5])
    assert found == [(False, pytest.approx(25.0)), (True, 0.0)]


# -- files of points -------------------------------------------------------------------------------


def test_a_file_of_points(tmp_path: Path) -> None:
    data = read_points(points_file(tmp_path, {"points": [POINT]}), MODELS)
    assert (data.name, data.points[0].measured_ms) == ("mine", 0.5)


def test_a_point_whose_measurement_is_no_number(tmp_path: Path) -> None:
    assert refused(tmp_path, {"points": [POINT | {"measured_ms": 0}]}) == (
        f"point 0 of '{tmp_path / 'mine.json'}' has 'measured_ms' 0; "
        "it is the milliseconds of the run, more than 0; correct the point"
    )


def test_what_is_wrong_in_a_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    assert refused(tmp_path, "{").startswith(f"'{path}' is not JSON; ")
    assert refused(tmp_path, []) == (
        f"'{path}' has no points; its list is empty; give it one or more"
    )
    assert refused(tmp_path, {"point": []}) == (
        f"'{path}' has no list 'points'; a file of points is an object with 'points', a list; "
        "see docs/tools.md"
    )
    assert refused(tmp_path, {"points": []}) == (
        f"'{path}' has no points; its list is empty; give it one or more"
    )
    assert refused(tmp_path, {"points": [3]}) == (
        f"point 0 of '{path}' is no object; write {{...}} with a kernel, as others"
    )
    assert refused(tmp_path, {"points": [POINT | {"kernel": "fft"}]}) == (
        f"point 0 of '{path}' has the kernel 'fft'; the kernels are vectorop, reduceop, scan, sel, "
        "hst, gemv, gemm; name one of these, or leave the point out"
    )
    assert refused(tmp_path, {"points": [POINT | {"parameters": None}]}) == (
        f"point 0 of '{path}' has no object 'parameters'; give it one"
    )
    assert refused(tmp_path, with_parameters(tasklets=0)) == (
        f"point 0 of '{path}' (vectorop) has 'tasklets' 0; it is a whole number from 1; correct it"
    )
    without = {name: value for name, value in PARAMETERS.items() if name != "dtype"}
    assert refused(tmp_path, {"points": [POINT | {"parameters": without}]}) == (
        f"point 0 of '{path}' (vectorop) has 'dtype' None; it is one of uint16_t, uint32_t, "
        "uint64_t; leave the point out"
    )
    assert refused(tmp_path, with_parameters(operation="MUL")) == (
        f"point 0 of '{path}' (vectorop) has 'operation' 'MUL'; it is one of ADD; "
        "leave the point out"
    )
    assert refused(tmp_path, with_parameters(dtype="float")) == (
        f"point 0 of '{path}' (vectorop) has 'dtype' 'float'; it is one of uint16_t, uint32_t, "
        "uint64_t; leave the point out"
    )


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        read_points(tmp_path / "none.json", MODELS)
    assert caught.value.message() == (
        f"cannot read '{tmp_path / 'none.json'}'; No such file or directory; name a file of points"
    )


def test_two_data_sets_of_one_name(tmp_path: Path) -> None:
    first = points_file(tmp_path, {"points": [POINT]})
    second = points_file(tmp_path, {"meta": {"name": "mine"}, "points": [POINT]}, "other.json")
    with pytest.raises(UserError) as caught:
        bench.data_sets((first, second))
    assert caught.value.message() == (
        f"two data sets are named 'mine'; the second is '{second}'; "
        "give it another name in its 'meta'"
    )


def test_a_matrix_that_is_no_whole_number_of_blocks() -> None:
    with pytest.raises(UserError) as caught:
        MODELS["gemv"].seconds(
            {"dtype": "uint32_t", "tasklets": 1, "rows_per_tasklet": 2, "K": 12}
            | {"elems_per_block": 8}
        )
    assert caught.value.message() == (
        "gemv with K = 12 and blocks of 8 elements; the measured kernel goes through whole blocks; "
        "make K a multiple of the block"
    )


@pytest.mark.parametrize("elements", [3, 1024])
def test_blocks_that_no_transfer_moves(elements: int) -> None:
    with pytest.raises(UserError) as caught:
        MODELS["sel"].seconds(PARAMETERS | {"elems_per_block": elements})
    assert caught.value.message() == (
        f"sel with blocks of {4 * elements} bytes; "
        "a transfer moves a multiple of 8 bytes, at most 2048; give it another 'elems_per_block'"
    )


def test_more_tasklets_than_a_dpu_has() -> None:
    with pytest.raises(UserError, match="30 tasklets on upmem-1"):
        MODELS["sel"].seconds(PARAMETERS | {"tasklets": 30})


# -- counting from the text ------------------------------------------------------------------------

COUNTED = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %t = upmem.tasklet_id : index
  %w = upmem.wram shared : memref<4xi32, $W>
  scf.for %i = %c0 to %c3 step %c1 {
    scf.for %j = %c0 to %i step %c1 {
      scf.for %k = %c0 to %t step %c1 {
        %x = memref.load %w[%c0] : memref<4xi32, $W>
        %y = arith.addi %x, %x : i32
        memref.store %y, %w[%t] : memref<4xi32, $W>
      }
    }
  }
"""


def test_loops_that_need_their_iteration_are_walked() -> None:
    kernel = kernel_with(COUNTED, 4)
    counts = static_counts(kernel, MACHINE)
    inner = counts.instructions[0] - counts.instructions[0][0]
    assert list(inner) == [0, *(np.arange(1, 4) * int(inner[1]))]
    # 0 + 1 + 2 iterations of the middle loop, an instruction each at least.
    assert inner[1] >= 3 * 3


def test_what_the_text_does_not_say_is_refused() -> None:
    body = """
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %w = upmem.wram : memref<4xi32, $W>
      %x = memref.load %w[%c0] : memref<4xi32, $W>
    """
    cases = {
        """%n = arith.index_cast %x : i32 to index
           scf.for %i = %c0 to %n step %c1 {
           }""": "'scf.for': its operand %n is not known",
        """%z = arith.constant 0 : i32
           %c = arith.cmpi eq, %x, %z : i32
           scf.if %c {
           }""": "'scf.if': how often its condition holds is not known",
        "%m = arith.muli %x, %x : i32": "'arith.muli': its operands are not known",
        """upmem.critical %c0 {
             memref.store %x, %w[%c0] : memref<4xi32, $W>
           }""": "'upmem.critical': how long its mutex is held is not counted from the text",
        """scf.for %i = %c1 to %c1 step %c0 {
           }""": "'scf.for': its step is not positive",
    }
    for text, reason in cases.items():
        with pytest.raises(UserError) as caught:
            static_counts(kernel_with(body + text, 1), MACHINE)
        assert caught.value.message() == (
            f"{reason}; counting from the text needs it; run the kernel in the simulator"
        )


def test_habits_are_shares_and_means() -> None:
    body = """
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %a = upmem.mram 0 : memref<8xi32, $M>
      %w = upmem.wram : memref<8xi32, $W>
      upmem.mram_read %a[%c0] to %w[%c0] count %c8 : memref<8xi32, $M>, memref<8xi32, $W>
      %two = arith.constant 2 : i32
      scf.for %i = %c0 to %c8 step %c1 {
        %x = memref.load %w[%i] : memref<8xi32, $W>
        %c = arith.cmpi slt, %x, %two : i32
        scf.if %c {
          memref.store %two, %w[%i] : memref<8xi32, $W>
        }
        %m = arith.muli %x, %x : i32
        memref.store %m, %w[%i] : memref<8xi32, $W>
      }
    """
    data = [(0, np.arange(8, dtype=np.int32))]
    habits = observe(kernel_with(body, 2), MACHINE, data, "pointer")
    assert list(habits.taken.values()) == [0.25]
    # 7 and one a bit of 0 (as 1), 1, 2, 3, 4, 5, 6, 7: 1 1 2 2 3 3 3 3.
    assert list(habits.steps.values()) == [7 + 18 / 8]


@pytest.mark.parametrize("kernel", MODELS)
def test_counts_from_the_text_are_those_of_the_simulator(kernel: str) -> None:
    text, data = {
        "gemv": (models.gemv_text, models.matrix_data),
        "gemm": (models.gemm_text, models.matrix_data),
    }.get(kernel, (models.streaming_text, models.streaming_data))
    p = SAMPLE | {"dtype": "uint32_t", "K": 32, "N": 16, "tasklets": 3, "blocks_per_tasklet": 4}
    micro = text(kernel, p)
    op, sizes = kernel_of(micro), tuple(micro.arguments.values())
    arrays = data(kernel, p)
    habits = observe(op, MACHINE, arrays, "compiled", sizes)
    assert habits.taken or habits.steps or kernel in ("vectorop", "reduceop", "scan")
    counted = static_counts(op, MACHINE, habits, "compiled", sizes)
    simulated = models.simulated(micro, arrays)
    # Products differ from tasklet to tasklet; counted are the means of all.
    assert counted.instructions == pytest.approx(simulated.instructions, rel=4e-3)
    assert counted.total == pytest.approx(simulated.total, rel=4e-3)
    assert (counted.read_bytes, counted.write_bytes) == (
        simulated.read_bytes,
        simulated.write_bytes,
    )
    # Without the data there is nothing to count by.
    if kernel in ("sel", "hst", "gemv", "gemm"):
        with pytest.raises(UserError):
            static_counts(op, MACHINE, None, "compiled", sizes)


# -- the table -------------------------------------------------------------------------------------

FIGURES = {
    "vectorop": 1.5,
    "reduceop": 3.2,
    "scan": 1.5,
    "sel": 2.0,
    "hst": 1.5,
    "gemv": 3.0,
    "gemm": 2.0,
}
"""Mean errors, in percent, that are held at most."""


def test_the_table_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["upmem-accuracy", "--only", "kernels", "--report", "json"]
    assert cim_bench.main(arguments) == 0
    table = json.loads(capsys.readouterr().out)
    rows = {row["row"].split()[1]: row for row in table["rows"]}
    assert set(rows) == set(FIGURES)
    for kernel, most in FIGURES.items():
        assert rows[kernel]["points"] == 60
        assert 0 < rows[kernel]["mape"] < most
        assert rows[kernel]["spearman"] > 0.99
    summary = table["summary"]
    assert summary["points"] == {"kernels": 420}
    assert 0 < summary["mape"]["kernels"] < 2.0
    assert 0 < summary["max_error"]["kernels"] < 17
    assert 0.99 < summary["spearman"]["kernels"] < 1
    assert summary["workloads"]["kernels"] == 85
    assert summary["regret"]["kernels"] <= 0.1


def test_points_of_another_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = points_file(tmp_path, {"points": [POINT, POINT | {"measured_ms": 5.0}]})
    assert cim_bench.main(["upmem-accuracy", "--points", str(path)]) == 0
    text = capsys.readouterr().out
    assert "mine vectorop" in text
    assert "kernels" not in text.split("\n", 2)[2]
    assert "pairs" not in text


def test_points_belong_to_this_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert cim_bench.main(["start", "--points", "x.json"]) == 1
    assert (
        capsys.readouterr()
        .err.strip()
        .endswith(
            "--points with table start; table upmem-accuracy is what compares measured points; "
            "leave --points out"
        )
    )
