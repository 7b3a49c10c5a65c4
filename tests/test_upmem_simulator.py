"""Hand-written UPMEM kernels and host programs against NumPy."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from upmem_programs import module_of, run, run_kernel, small_machine
from xdsl.ir import Operation

from cim_opt.dialects import upmem
from cim_opt.errors import UserError
from cim_opt.simulators import elementwise
from cim_opt.simulators.upmem import UpmemEvaluator, UpmemSimulator
from cim_opt.simulators.upmem_kernel import HANDLERS, kernel_source
from cim_opt.simulators.upmem_rules import RULES

select: Any = np.where
RNG = np.random.default_rng(7)


def numbers(count: int, dtype: str = "int32") -> Any:
    """Random numbers over the whole range of a type."""
    if dtype == "bool":
        return RNG.integers(0, 2, count).astype(np.bool_)
    if dtype == "float32":
        return RNG.standard_normal(count).astype(np.float32)
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, count, dtype=dtype, endpoint=True)


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


@pytest.mark.parametrize(
    ("length", "start", "count", "stride"),
    [
        (20, 0, 4, 4),
        (13, 0, 4, 4),
        (5, 0, 4, 4),
        (0, 0, 4, 4),
        (20, 3, 4, 2),
        (9, 1, 8, 1),
        (20, 0, 4, 0),
        (3, 7, 2, 2),
        (20, 16, 4, 0),
    ],
)
def test_push_gives_every_dpu_its_part_and_zeros(
    length: int, start: int, count: int, stride: int
) -> None:
    source, old = numbers(length), numbers(4 * count)
    text = f"""
    func.func @main(%a: tensor<?xi32>, %old: tensor<?xi32>, %start: index, %stride: index)
        -> tensor<?xi32> {{
      %zero = arith.constant 0 : index
      %four = arith.constant 4 : index
      %count = arith.constant {count} : index
      %set = upmem.alloc %four : !upmem.dpus
      upmem.push %a[%start] to %set at 8 count %count stride %stride : tensor<?xi32>
      %r = upmem.pull %set at 8 count %count into %old[%zero] : tensor<?xi32>
      func.return %r : tensor<?xi32>
    }}
    """
    results, report = run(text, [source, old, start, stride])
    padded = np.append(source, np.zeros(100, np.int32))
    expected = [padded[start + d * stride :][:count] for d in range(4)]
    assert (results[0] == np.concatenate(expected)).all()
    assert report.host_to_dpu.bytes == report.dpu_to_host.bytes == 4 * 4 * count


@pytest.mark.parametrize(
    ("length", "position"), [(20, 0), (20, 3), (14, 2), (1, 0), (0, 0), (9, 8)]
)
def test_pull_keeps_the_rest_of_its_destination(length: int, position: int) -> None:
    source, dest = numbers(16), numbers(length)
    text = """
    func.func @main(%a: tensor<?xi32>, %d: tensor<?xi32>, %at: index)
        -> (tensor<?xi32>, tensor<?xi32>) {
      %zero = arith.constant 0 : index
      %four = arith.constant 4 : index
      %set = upmem.alloc %four : !upmem.dpus
      upmem.push %a[%zero] to %set at 0 count %four stride %four : tensor<?xi32>
      %r = upmem.pull %set at 0 count %four into %d[%at] : tensor<?xi32>
      func.return %r, %d : tensor<?xi32>, tensor<?xi32>
    }
    """
    results, _ = run(text, [source, dest, position])
    expected = dest.copy()
    end = min(length, position + 16)
    expected[position:end] = source[: end - position]
    assert (results[0] == expected).all()
    assert (results[1] == dest).all()


def test_broadcast_pads_with_zeros_and_regions_grow_together() -> None:
    """Arrays that touch and overlap in MRAM, pushed as one type and pulled as another."""
    text = """
    func.func @main(%a: tensor<5xi8>, %b: tensor<8xi8>) -> (tensor<6xi32>, tensor<8xi8>) {
      %zero = arith.constant 0 : index
      %two = arith.constant 2 : index
      %four = arith.constant 4 : index
      %six = arith.constant 6 : index
      %eight = arith.constant 8 : index
      %set = upmem.alloc %two : !upmem.dpus
      upmem.broadcast %b to %set at 16 : tensor<8xi8>
      upmem.broadcast %a to %set at 8 : tensor<5xi8>
      %e = tensor.empty() : tensor<6xi32>
      %r = upmem.pull %set at 0 count %six into %e[%zero] : tensor<6xi32>
      upmem.broadcast %b to %set at 8 : tensor<8xi8>
      %f = tensor.empty() : tensor<8xi8>
      %s = upmem.pull %set at 8 count %eight into %f[%zero] : tensor<8xi8>
      func.return %r, %s : tensor<6xi32>, tensor<8xi8>
    }
    """
    a, b = numbers(5, "int8"), numbers(8, "int8")
    results, report = run(text, [a, b])
    memory = results[0].view(np.int8)
    assert (memory[:8].view(np.uint8) == 0xA5).all()  # never written
    assert (memory[8:16] == [*a, 0, 0, 0]).all()
    assert (memory[16:] == b).all()
    assert (results[1] == b).all()
    assert report.host_to_dpu.count == 3


def test_no_dpus_do_nothing_in_no_time() -> None:
    text = """
    func.func @main(%a: tensor<?xi32>, %d: tensor<?xi32>) -> tensor<?xi32> {
      %zero = arith.constant 0 : index
      %four = arith.constant 4 : index
      %set = upmem.alloc %zero : !upmem.dpus
      upmem.push %a[%zero] to %set at 0 count %four stride %four : tensor<?xi32>
      upmem.broadcast %a to %set at 0 : tensor<?xi32>
      %t = upmem.launch @k on %set () : () -> !upmem.token
      upmem.wait %t : !upmem.token
      %r = upmem.pull %set at 0 count %four into %d[%zero] : tensor<?xi32>
      upmem.free %set : !upmem.dpus
      func.return %r : tensor<?xi32>
    }
    upmem.kernel @k tasklets 1 () {
      upmem.return
    }
    """
    dest = numbers(6)
    results, report = run(text, [numbers(8), dest])
    assert (results[0] == dest).all()
    assert report.seconds == report.cycles == report.launches == report.host_to_dpu.bytes == 0


def test_compact_keeps_the_start_of_every_segment() -> None:
    text = """
    func.func @main(%d: tensor<?xi32>, %n: index, %c: tensor<?xi64>) -> tensor<?xi32> {
      %r = upmem.compact %d segments %n counts %c scale 2 : tensor<?xi32>, tensor<?xi64>
        -> tensor<?xi32>
      func.return %r : tensor<?xi32>
    }
    """
    data, counts = numbers(40), np.array([2, 0, 4, 1, 3], np.int64)
    results, report = run(text, [data, 8, counts])
    expected = [data[8 * s : 8 * s + 2 * n] for s, n in enumerate(counts)]
    assert (results[0] == np.concatenate(expected)).all()
    assert report.host_seconds > 0
    with pytest.raises(UserError, match=r"segment 2 keeps 10 elements; segments have room for 8"):
        run(text, [data, 8, np.array([2, 0, 5], np.int64)])


# (a, b) and (c, d) stand for the maps x -> a*x + b: composition, which is not commutative.
AFFINE = """
  ^bb0(%a: i32, %b: i32, %c: i32, %d: i32):
    %ac = arith.muli %a, %c : i32
    %bc = arith.muli %b, %c : i32
    %s = arith.addi %bc, %d : i32
    upmem.yield %ac, %s : i32, i32
"""


def compose(maps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Running compositions of maps."""
    state = (1, 0)
    out: list[tuple[int, int]] = []
    for a, b in maps:
        state = (state[0] * a % 2**32, (state[1] * a + b) % 2**32)
        out.append(state)
    return out


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64, 101])
def test_merge_reduce_keeps_the_order(count: int) -> None:
    text = f"""
    func.func @main(%p: tensor<?xi32>, %q: tensor<?xi32>, %i: i32, %j: i32) -> (i32, i32) {{
      %r:2 = upmem.merge_reduce partials(%p, %q : tensor<?xi32>, tensor<?xi32>)
        init(%i, %j : i32, i32) strides [2, 1] -> (i32, i32) {{
      {AFFINE}
      }}
      func.return %r#0, %r#1 : i32, i32
    }}
    """
    p, q = numbers(2 * count), numbers(count)
    results, _ = run(text, [p, q, np.int32(3), np.int32(-5)])
    a, b = ([(3, -5), *compose([(3, -5), *zip(p[::2].tolist(), q.tolist(), strict=True)])])[-1]
    assert [int(v) % 2**32 for v in results] == [a % 2**32, b % 2**32]


def test_merge_reduce_of_tensors_works_on_elements() -> None:
    text = """
    func.func @main(%p: tensor<?xi32>, %i: tensor<3xi32>) -> tensor<3xi32> {
      %r = upmem.merge_reduce partials(%p : tensor<?xi32>) init(%i : tensor<3xi32>)
        strides [4] -> (tensor<3xi32>) {
      ^bb0(%a: i32, %b: i32):
        %s = arith.addi %a, %b : i32
        upmem.yield %s : i32
      }
      func.return %r : tensor<3xi32>
    }
    """
    p, init = numbers(4 * 9), numbers(3)
    results, _ = run(text, [p, init])
    assert (results[0] == init + p.reshape(9, 4)[:, :3].sum(axis=0, dtype=np.int32)).all()


@pytest.mark.parametrize("exclusive", ["", "exclusive"])
@pytest.mark.parametrize(
    ("dpus", "tasklets", "per_dpu", "chunk"),
    [(1, 1, 5, 5), (3, 4, 10, 4), (2, 4, 12, 3), (4, 3, 2, 2), (0, 4, 8, 2), (2, 2, 0, 0)],
)
def test_merge_scan_joins_what_tasklets_scanned(
    exclusive: str, dpus: int, tasklets: int, per_dpu: int, chunk: int
) -> None:
    """Composition of affine maps: the order matters, and so does each offset."""
    text = f"""
    func.func @main(%x: tensor<?xi32>, %y: tensor<?xi32>, %t: tensor<?xi32>, %u: tensor<?xi32>,
        %i: i32, %j: i32, %n: index, %k: index) -> (tensor<?xi32>, tensor<?xi32>, i32, i32) {{
      %r:4 = upmem.merge_scan {exclusive} locals(%x, %y : tensor<?xi32>, tensor<?xi32>)
        totals(%t, %u : tensor<?xi32>, tensor<?xi32>) init(%i, %j : i32, i32)
        tasklets {tasklets} per_dpu %n chunk %k
        -> (tensor<?xi32>, tensor<?xi32>) carry (i32, i32) {{
      {AFFINE}
      }}
      func.return %r#0, %r#1, %r#2, %r#3 : tensor<?xi32>, tensor<?xi32>, i32, i32
    }}
    """
    maps = list(
        zip(numbers(dpus * per_dpu).tolist(), numbers(dpus * per_dpu).tolist(), strict=True)
    )
    local: list[tuple[int, int]] = []
    totals: list[tuple[int, int]] = []
    for dpu in range(dpus):
        own = maps[dpu * per_dpu : (dpu + 1) * per_dpu]
        for tasklet in range(tasklets):
            part = compose(own[tasklet * chunk : (tasklet + 1) * chunk] if chunk else [])
            local += part
            totals.append(part[-1] if part else (12345, 678))  # past the end: never looked at
    columns = [_column(local, 0), _column(local, 1), _column(totals, 0), _column(totals, 1)]
    results, _ = run(text, [*columns, np.int32(7), np.int32(9), per_dpu, chunk])
    expected = compose([(7, 9), *maps])
    merged = expected[:-1] if exclusive else expected[1:]
    assert (results[0] == _column(merged, 0)).all()
    assert (results[1] == _column(merged, 1)).all()
    assert [int(v) % 2**32 for v in results[2:]] == list(expected[-1])


def _column(pairs: list[tuple[int, int]], index: int) -> Any:
    return np.array([pair[index] for pair in pairs], np.int64).astype(np.int32)


OVERLAP = """
func.func @main(%a: tensor<?xi32>) -> tensor<?xi32> {{
  %one = arith.constant 1 : index
  %set = upmem.alloc %one : !upmem.dpus
  %t = upmem.launch @k on %set () : () -> !upmem.token
  {before}
  %y = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32> {{
    %d = arith.addi %x, %x : i32
    pattern.yield %d : i32
  }}
  {after}
  func.return %y : tensor<?xi32>
}}
upmem.kernel @k tasklets 1 () {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 100 : index
  scf.for %i = %c0 to %n step %c1 {{
    upmem.barrier_free
  }}
  upmem.return
}}
"""


def test_host_work_between_launch_and_wait_is_hidden() -> None:
    wait = "upmem.wait %t : !upmem.token"
    text = OVERLAP.replace("upmem.barrier_free", "")
    values = numbers(1000)
    _, apart = run(text.format(before=wait, after=""), [values])
    _, beside = run(text.format(before="", after=wait), [values])
    assert apart.hidden_seconds == 0
    assert apart.host_seconds > 8000 / 10e9
    assert apart.host_seconds == beside.host_seconds
    assert beside.hidden_seconds == pytest.approx(beside.host_seconds)
    assert beside.seconds == pytest.approx(apart.seconds - apart.host_seconds)


def test_a_host_thread_runs_beside_transfers() -> None:
    text = """
    func.func @main(%a: tensor<?xi32>) -> (tensor<?xi32>, tensor<8xi32>) {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %eight = arith.constant 8 : index
      %set = upmem.alloc %one : !upmem.dpus
      %y = upmem.host_thread -> (tensor<?xi32>) {
        %m = pattern.map(%x in %a : tensor<?xi32>) -> tensor<?xi32> {
          %d = arith.addi %x, %x : i32
          pattern.yield %d : i32
        }
        upmem.yield %m : tensor<?xi32>
      }
      upmem.push %a[%zero] to %set at 0 count %eight stride %eight : tensor<?xi32>
      %e = tensor.empty() : tensor<8xi32>
      %r = upmem.pull %set at 0 count %eight into %e[%zero] : tensor<8xi32>
      func.return %y, %r : tensor<?xi32>, tensor<8xi32>
    }
    """
    few, many = numbers(100), numbers(10_000_000)
    results, report = run(text, [few])
    assert (results[0] == few + few).all()
    moved = report.host_to_dpu.seconds + report.dpu_to_host.seconds
    assert report.seconds == pytest.approx(moved)
    assert report.hidden_seconds == pytest.approx(report.host_seconds)
    _, report = run(text, [many])
    assert report.seconds == pytest.approx(report.host_seconds)
    assert report.hidden_seconds == pytest.approx(
        report.host_to_dpu.seconds + report.dpu_to_host.seconds
    )


def test_models_of_transfers_and_the_module_s_own_machine() -> None:
    text = """
    module attributes {upmem.machine = "upmem-1"} {
      func.func @main(%a: tensor<8xi32>) {
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %eight = arith.constant 8 : index
        %set = upmem.alloc %one : !upmem.dpus
        upmem.push %a[%zero] to %set at 0 count %eight stride %eight : tensor<8xi32>
        func.return
      }
    }
    """
    module, values = module_of(text), numbers(8)
    _, measured = UpmemSimulator().run(module, "main", [values])
    _, linear = UpmemSimulator(transfer="linear").run(module, "main", [values])
    assert measured.machine == linear.machine == "upmem-1"
    assert measured.seconds > 30e-6 > linear.seconds > 0
    assert linear.transfer_model == "linear"
    with pytest.raises(UserError, match="unknown transfer model 'fast'"):
        UpmemSimulator(transfer="fast")
    with pytest.raises(UserError, match="does not say its machine"):
        UpmemSimulator().run(module_of("func.func @main() { func.return }"), "main", [])


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
