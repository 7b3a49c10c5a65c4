"""Hand-written UPMEM kernels against NumPy, and what every operation has."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from upmem_programs import module_of, numbers, run, run_kernel, small_machine
from xdsl.ir import Operation

from cim_opt.dialects import upmem
from cim_opt.errors import UserError
from cim_opt.simulators import elementwise
from cim_opt.simulators.upmem import UpmemEvaluator
from cim_opt.simulators.upmem_kernel import HANDLERS, kernel_source
from cim_opt.simulators.upmem_rules import RULES

select: Any = np.where
VECTOR_ADD = """
  %t = upmem.tasklet_id : index
  %a = upmem.mram 0 : memref<{n}xi32, $M>
  %b = upmem.mram 65536 : memref<{n}xi32, $M>
  %c = upmem.mram 1048576 : memref<{n}xi32, $M>
  %wa = upmem.wram : memref<64xi32, $W>
  %wb = upmem.wram : memref<64xi32, $W>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %block = arith.constant 64 : index
  %chunk = arith.constant {chunk} : index
  %n = arith.constant {n} : index
  %start = arith.muli %t, %chunk : index
  %far = arith.addi %start, %chunk : index
  %end = arith.minsi %far, %n : index
  scf.for %i = %start to %end step %block {{
    %left = arith.subi %end, %i : index
    %count = arith.minsi %left, %block : index
    upmem.mram_read %a[%i] to %wa[%c0] count %count : memref<{n}xi32, $M>, memref<64xi32, $W>
    upmem.mram_read %b[%i] to %wb[%c0] count %count : memref<{n}xi32, $M>, memref<64xi32, $W>
    scf.for %j = %c0 to %count step %c1 {{
      %x = memref.load %wa[%j] : memref<64xi32, $W>
      %y = memref.load %wb[%j] : memref<64xi32, $W>
      %s = arith.addi %x, %y : i32
      memref.store %s, %wa[%j] : memref<64xi32, $W>
    }}
    upmem.mram_write %wa[%c0] to %c[%i] count %count : memref<64xi32, $W>, memref<{n}xi32, $M>
  }}
"""


@pytest.mark.parametrize("dpus", [1, 3])
@pytest.mark.parametrize(("tasklets", "chunk"), [(1, 500), (4, 126), (16, 32), (11, 46)])
def test_vector_add_with_uneven_tasklets(dpus: int, tasklets: int, chunk: int) -> None:
    """Tasklets that get fewer elements, or none, and blocks that are not full."""
    a, b = numbers(500 * dpus), numbers(500 * dpus)
    text = VECTOR_ADD.format(n=500, chunk=chunk)
    got, report = run_kernel(text, [a, b], ("i32", 500), dpus=dpus, tasklets=tasklets)
    assert (got == (a + b).reshape(dpus, 500)).all()
    kernel = report.kernels[0]
    assert kernel.read_bytes == 2 * a.nbytes
    assert kernel.write_bytes == a.nbytes
    assert kernel.cycles == pytest.approx(sum(kernel.cycles_by_cause.values()))


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "float32"])
def test_every_element_type_is_stored_as_it_is(dtype: str) -> None:
    """A copy through WRAM, element by element, backwards: index arithmetic that varies by lane."""
    name = {"bool": "i1", "float32": "f32"}.get(dtype, "i" + dtype[3:])
    values = numbers(64, dtype)
    text = f"""
      %t = upmem.tasklet_id : index
      %a = upmem.mram 0 : memref<32x{name}, $M>
      %c = upmem.mram 1048576 : memref<32x{name}, $M>
      %w = upmem.wram : memref<8x{name}, $W>
      %v = upmem.wram : memref<8x{name}, $W>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c7 = arith.constant 7 : index
      %c8 = arith.constant 8 : index
      %i = arith.muli %t, %c8 : index
      upmem.mram_read %a[%i] to %w[%c0] count %c8 : memref<32x{name}, $M>, memref<8x{name}, $W>
      scf.for %j = %c0 to %c8 step %c1 {{
        %k = arith.subi %c7, %j : index
        %turn = arith.addi %k, %t : index
        %at = arith.remui %turn, %c8 : index
        %x = memref.load %w[%j] : memref<8x{name}, $W>
        memref.store %x, %v[%at] : memref<8x{name}, $W>
      }}
      upmem.mram_write %v[%c0] to %c[%i] count %c8 : memref<8x{name}, $W>, memref<32x{name}, $M>
    """
    got, _ = run_kernel(text, [values], (name, 32), dpus=2, tasklets=4)
    blocks = values.reshape(2, 4, 8)[:, :, ::-1]
    expected = np.stack([np.roll(blocks[:, t], t, axis=1) for t in range(4)], axis=1)
    assert got.dtype == values.dtype
    assert (got == expected.reshape(2, 32)).all()


def test_loops_with_bounds_that_differ_and_branches() -> None:
    """Tasklet t of DPU d sums the first t + x[d] elements, odd ones negated, then counts steps."""
    x = np.array([3, 0, 5, 1], np.int32).repeat(2)
    values = numbers(4 * 32)
    text = """
      %t = upmem.tasklet_id : index
      %x = upmem.mram 0 : memref<2xi32, $M>
      %a = upmem.mram 65536 : memref<32xi32, $M>
      %c = upmem.mram 1048576 : memref<16xi32, $M>
      %wx = upmem.wram : memref<2xi32, $W>
      %w = upmem.wram : memref<32xi32, $W>
      %r = upmem.wram : memref<2xi32, $W>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c32 = arith.constant 32 : index
      %z = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      upmem.mram_read %x[%c0] to %wx[%c0] count %c2 : memref<2xi32, $M>, memref<2xi32, $W>
      upmem.mram_read %a[%c0] to %w[%c0] count %c32 : memref<32xi32, $M>, memref<32xi32, $W>
      %xi = memref.load %wx[%c1] : memref<2xi32, $W>
      %xx = arith.index_cast %xi : i32 to index
      %end = arith.addi %xx, %t : index
      %sum, %steps = scf.for %i = %c0 to %end step %c1 iter_args(%s = %z, %k = %z) -> (i32, i32) {
        %v = memref.load %w[%i] : memref<32xi32, $W>
        %low = arith.andi %v, %one : i32
        %odd = arith.cmpi eq, %low, %one : i32
        %signed = scf.if %odd -> (i32) {
          %m = arith.subi %z, %v : i32
          scf.yield %m : i32
        } else {
          scf.yield %v : i32
        }
        %n = arith.addi %s, %signed : i32
        %l = arith.addi %k, %one : i32
        scf.yield %n, %l : i32, i32
      }
      memref.store %sum, %r[%c0] : memref<2xi32, $W>
      memref.store %steps, %r[%c1] : memref<2xi32, $W>
      %o = arith.muli %t, %c2 : index
      upmem.mram_write %r[%c0] to %c[%o] count %c2 : memref<2xi32, $W>, memref<16xi32, $M>
    """
    got, report = run_kernel(text, [x, values], ("i32", 16), dpus=4, tasklets=8)
    signed = select(values & 1, -values, values).reshape(4, 32)
    for dpu in range(4):
        for tasklet in range(8):
            end = int(x[2 * dpu]) + tasklet
            assert got[dpu, 2 * tasklet] == signed[dpu, :end].sum(dtype=np.int32)
            assert got[dpu, 2 * tasklet + 1] == end
    assert 0 < report.kernels[0].tasklet_balance < 1
    assert 0 < report.kernels[0].dpu_balance < 1


def test_filter_with_a_place_of_its_own_on_each_lane() -> None:
    """Stores under a condition at an index that grows differently on each lane."""
    values = numbers(2 * 4 * 32, "int16")
    text = """
      %t = upmem.tasklet_id : index
      %a = upmem.mram 0 : memref<128xi16, $M>
      %c = upmem.mram 1048576 : memref<144xi16, $M>
      %w = upmem.wram : memref<32xi16, $W>
      %k = upmem.wram : memref<36xi16, $W>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c32 = arith.constant 32 : index
      %c36 = arith.constant 36 : index
      %z = arith.constant 0 : i16
      scf.for %i = %c0 to %c36 step %c1 {
        memref.store %z, %k[%i] : memref<36xi16, $W>
      }
      %i = arith.muli %t, %c32 : index
      upmem.mram_read %a[%i] to %w[%c0] count %c32 : memref<128xi16, $M>, memref<32xi16, $W>
      %n = scf.for %j = %c0 to %c32 step %c1 iter_args(%at = %c0) -> (index) {
        %x = memref.load %w[%j] : memref<32xi16, $W>
        %keep = arith.cmpi sgt, %x, %z : i16
        %next = scf.if %keep -> (index) {
          memref.store %x, %k[%at] : memref<36xi16, $W>
          %more = arith.addi %at, %c1 : index
          scf.yield %more : index
        } else {
          scf.yield %at : index
        }
        scf.yield %next : index
      }
      %count = arith.index_cast %n : index to i16
      memref.store %count, %k[%c32] : memref<36xi16, $W>
      %o = arith.muli %t, %c36 : index
      upmem.mram_write %k[%c0] to %c[%o] count %c36 : memref<36xi16, $W>, memref<144xi16, $M>
    """
    got, _ = run_kernel(text, [values], ("i16", 144), dpus=2, tasklets=4)
    for lane, block in enumerate(values.reshape(8, 32)):
        kept = block[block > 0]
        row = got.reshape(8, 36)[lane]
        assert row[32] == len(kept)
        assert (row[: len(kept)] == kept).all()


SHARED_SUM = """
  %t = upmem.tasklet_id : index
  %a = upmem.mram 0 : memref<32xi32, $M>
  %c = upmem.mram 1048576 : memref<2xi32, $M>
  %w = upmem.wram : memref<2xi32, $W>
  %h = upmem.wram shared : memref<8xi32, $W>
  %o = upmem.wram : memref<2xi32, $W>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %z = arith.constant 0 : i32
  %i = arith.muli %t, %c2 : index
  %first = arith.cmpi eq, %t, %c0 : index
  scf.if %first {
    memref.store %z, %h[%c0] : memref<8xi32, $W>
  }
  upmem.barrier
  upmem.mram_read %a[%i] to %w[%c0] count %c2 : memref<32xi32, $M>, memref<2xi32, $W>
  %x = memref.load %w[%c0] : memref<2xi32, $W>
  upmem.critical %c1 {
    %old = memref.load %h[%c0] : memref<8xi32, $W>
    %new = arith.addi %old, %x : i32
    memref.store %new, %h[%c0] : memref<8xi32, $W>
  }
  upmem.barrier
  scf.if %first {
    %sum = memref.load %h[%c0] : memref<8xi32, $W>
    memref.store %sum, %o[%c0] : memref<2xi32, $W>
    memref.store %z, %o[%c1] : memref<2xi32, $W>
    upmem.mram_write %o[%c0] to %c[%c0] count %c2 : memref<2xi32, $W>, memref<2xi32, $M>
  }
"""


def test_critical_sections_add_up_what_tasklets_have() -> None:
    """A shared sum under a mutex, between barriers; the lock shows in the cycles."""
    values = numbers(3 * 32)
    got, report = run_kernel(SHARED_SUM, [values], ("i32", 2), dpus=3, tasklets=16)
    assert (got[:, 0] == values.reshape(3, 32)[:, ::2].sum(axis=1, dtype=np.int32)).all()
    # Two barriers of 16 tasklets, and 16 sections of lock, load, add, store, unlock, one by one.
    sync = report.kernels[0].cycles_by_cause["sync"]
    assert 2 * 2860 < sync < 2 * 2860 + 16 * 16 * 7


def test_an_array_of_shared_wram_is_filled_by_all_tasklets() -> None:
    """DMA into a shared buffer, each tasklet its part, read by all after a barrier."""
    values = numbers(2 * 32, "int64")
    text = """
      %t = upmem.tasklet_id : index
      %a = upmem.mram 0 : memref<32xi64, $M>
      %c = upmem.mram 1048576 : memref<8xi64, $M>
      %h = upmem.wram shared : memref<32xi64, $W>
      %o = upmem.wram : memref<1xi64, $W>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c31 = arith.constant 31 : index
      %i = arith.muli %t, %c4 : index
      upmem.mram_read %a[%i] to %h[%i] count %c4 : memref<32xi64, $M>, memref<32xi64, $W>
      upmem.barrier
      %j = arith.subi %c31, %i : index
      %x = memref.load %h[%j] : memref<32xi64, $W>
      %y = memref.load %h[%c31] : memref<32xi64, $W>
      %s = arith.xori %x, %y : i64
      memref.store %s, %o[%c0] : memref<1xi64, $W>
      upmem.mram_write %o[%c0] to %c[%t] count %c1 : memref<1xi64, $W>, memref<8xi64, $M>
    """
    got, _ = run_kernel(text, [values], ("i64", 8), dpus=2, tasklets=8)
    rows = values.reshape(2, 32)
    assert (got == (rows[:, ::-1][:, ::4] ^ rows[:, 31:])).all()


def test_a_loaded_value_does_not_change_with_its_buffer() -> None:
    """Swapping neighbours needs both values as they were loaded."""
    values = numbers(4)
    text = """
      %a = upmem.mram 0 : memref<4xi32, $M>
      %c = upmem.mram 1048576 : memref<4xi32, $M>
      %w = upmem.wram : memref<4xi32, $W>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      upmem.mram_read %a[%c0] to %w[%c0] count %c4 : memref<4xi32, $M>, memref<4xi32, $W>
      %x = memref.load %w[%c0] : memref<4xi32, $W>
      %y = memref.load %w[%c1] : memref<4xi32, $W>
      memref.store %y, %w[%c0] : memref<4xi32, $W>
      memref.store %x, %w[%c1] : memref<4xi32, $W>
      %prev = memref.load %w[%c2] : memref<4xi32, $W>
      %last = scf.for %i = %c2 to %c4 step %c1 iter_args(%p = %prev) -> (i32) {
        %v = memref.load %w[%i] : memref<4xi32, $W>
        memref.store %p, %w[%i] : memref<4xi32, $W>
        scf.yield %v : i32
      }
      memref.store %last, %w[%c2] : memref<4xi32, $W>
      upmem.mram_write %w[%c0] to %c[%c0] count %c4 : memref<4xi32, $W>, memref<4xi32, $M>
    """
    got, _ = run_kernel(text, [values], ("i32", 4))
    a, b, c, d = values
    assert list(got[0]) == [b, a, d, c]


def test_kernel_arguments_reach_all_lanes() -> None:
    text = """
    func.func @main(%n: index, %scale: i32) -> tensor<8xi32> {
      %zero = arith.constant 0 : index
      %two = arith.constant 2 : index
      %four = arith.constant 4 : index
      %set = upmem.alloc %two : !upmem.dpus
      %t = upmem.launch @k on %set (%n, %scale) : (index, i32) -> !upmem.token
      upmem.wait %t : !upmem.token
      %e = tensor.empty() : tensor<8xi32>
      %r = upmem.pull %set at 0 count %four into %e[%zero] : tensor<8xi32>
      func.return %r : tensor<8xi32>
    }
    upmem.kernel @k tasklets 2 (%n: index, %scale: i32) {
      %t = upmem.tasklet_id : index
      %c = upmem.mram 0 : memref<4xi32, $M>
      %w = upmem.wram : memref<2xi32, $W>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %s = arith.addi %t, %n : index
      %i = arith.index_cast %s : index to i32
      %p = arith.muli %i, %scale : i32
      memref.store %p, %w[%c0] : memref<2xi32, $W>
      memref.store %scale, %w[%c1] : memref<2xi32, $W>
      %o = arith.muli %t, %c2 : index
      upmem.mram_write %w[%c0] to %c[%o] count %c2 : memref<2xi32, $W>, memref<4xi32, $M>
      upmem.return
    }
    """
    results, _ = run(text, [5, np.int32(-3)])
    assert list(results[0]) == [-15, -3, -18, -3] * 2


def test_the_report_reads_well_and_is_plain_in_json() -> None:
    import json

    values = numbers(500)
    text = VECTOR_ADD.format(n=500, chunk=126)
    _, report = run_kernel(text, [values, values], ("i32", 500), tasklets=4)
    shown = report.to_text()
    assert "kernel @k: 1 launch on 1 DPUs x 4 tasklets" in shown
    assert "end to end" in shown
    data = json.loads(json.dumps(report.to_json_dict()))
    assert data["target"] == "upmem"
    assert data["seconds"] == pytest.approx(
        sum(data[name]["seconds"] for name in ("host_to_dpu", "dpu_to_host"))
        + data["launch_seconds"]
        + data["kernel_seconds"]
        + data["host_seconds"]
        - data["hidden_seconds"]
    )
    assert data["cycles"] == data["kernels"][0]["cycles"]


def test_progress_is_told_while_a_kernel_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cim_opt.simulators.upmem_run.PROGRESS_SECONDS", 0.0)
    told: list[tuple[float, str]] = []
    text = """
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant 100 : index
      %z = arith.constant 0 : index
      %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %z) -> (index) {
        %t = upmem.tasklet_id : index
        %b = arith.addi %a, %t : index
        scf.yield %b : index
      }
    """

    def tell(part: float, words: str) -> None:
        told.append((part, words))

    run_kernel(text, tasklets=2, progress=tell)
    assert told
    assert all(0 <= part < 1 and words == "kernel @k" for part, words in told)


def test_the_generated_text_can_be_looked_at() -> None:
    module = module_of(f"upmem.kernel @k tasklets 2 () {{ {SHARED_SUM} upmem.return }}")
    kernel = next(op for op in module.ops if isinstance(op, upmem.KernelOp))
    source = kernel_source(kernel)
    assert "def kernel(run):" in source
    assert "def critical0(run, " in source
    assert "run.barrier()" in source


@pytest.mark.parametrize("op", upmem.KERNEL_OPS, ids=lambda op: op.name)
def test_every_kernel_operation_is_documented_run_and_costed(op: type[Operation]) -> None:
    assert op.__doc__
    if op is not upmem.KernelOp:  # its body is what runs
        assert op.name in HANDLERS
        assert op.name in RULES


@pytest.mark.parametrize("op", upmem.HOST_OPS, ids=lambda op: op.name)
def test_every_host_operation_is_documented_and_run(op: type[Operation]) -> None:
    assert op.__doc__
    if op is not upmem.YieldOp:  # ends a region
        assert op.name in UpmemEvaluator.handlers


def test_what_has_a_cost_can_run_and_what_has_none_is_refused() -> None:
    """No cost without execution; elementwise operations without a cost raise."""
    runnable = set(HANDLERS) | set(elementwise.FUNCTIONS)
    assert set(RULES) <= runnable
    assert runnable - set(RULES), "then this test shows nothing"
    text = """
      %x = arith.constant 2.0 : f32
      %y = math.exp %x : f32
    """
    with pytest.raises(UserError, match=r"no instruction cost for 'math.exp' in a kernel"):
        run_kernel(text)


def test_a_machine_without_room_is_not_asked() -> None:
    with pytest.raises(UserError, match=r"'upmem.alloc' of 5 DPUs; upmem-2560 has 4"):
        run_kernel("", dpus=5, machine=small_machine(4))


def test_the_program_on_the_page_runs() -> None:
    page = (Path(__file__).parents[1] / "docs" / "upmem.md").read_text()
    (program,) = re.findall(r"```mlir\n(.*?)```", page, re.DOTALL)
    values = numbers(64)
    results, report = run(program, [values])
    assert (results[0] == values + 1).all()
    assert report.kernels[0].dpus == 2
