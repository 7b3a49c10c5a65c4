"""The host part of UPMEM programs against NumPy: transfers, merging, what runs beside what."""

from typing import Any

import numpy as np
import pytest
from upmem_programs import module_of, numbers, run, small_machine

from cim_opt.cost.upmem_transfer import pull_seconds, serial_pull_seconds, serial_push_seconds
from cim_opt.errors import UserError
from cim_opt.simulators.upmem import UpmemSimulator


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


@pytest.mark.parametrize("transfer", ["measured", "linear"])
def test_serial_transfers_do_the_same_one_dpu_after_another(transfer: str) -> None:
    text = """
    func.func @main(%a: tensor<64xi32>) -> tensor<64xi32> {
      %zero = arith.constant 0 : index
      %four = arith.constant 4 : index
      %n = arith.constant 16 : index
      %set = upmem.alloc %four : !upmem.dpus
      upmem.push SERIAL %a[%zero] to %set at 0 count %n stride %n : tensor<64xi32>
      %r = upmem.pull SERIAL %set at 0 count %n into %a[%zero] : tensor<64xi32>
      func.return %r : tensor<64xi32>
    }
    """
    source, machine = numbers(64), small_machine()
    result, serial = run(text.replace("SERIAL", "serial"), [source], transfer=transfer)
    _, parallel = run(text.replace("SERIAL", ""), [source], transfer=transfer)
    assert (result[0] == source).all()
    assert serial.host_to_dpu.bytes == parallel.host_to_dpu.bytes == 256
    assert serial.host_to_dpu.seconds == serial_push_seconds(machine, transfer, 4, 64)
    assert serial.dpu_to_host.seconds == serial_pull_seconds(machine, transfer, 4, 64)
    assert serial.seconds > parallel.seconds


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


def test_compact_puts_the_start_of_every_segment_into_place() -> None:
    text = """
    func.func @main(%d: tensor<?xi32>, %n: index, %c: tensor<?xi64>, %to: tensor<?xi32>, %at: index)
        -> (tensor<?xi32>, tensor<?xi32>) {
      %r = upmem.compact %d segments %n counts %c scale 2 into %to[%at]
        : tensor<?xi32>, tensor<?xi64> -> tensor<?xi32>
      func.return %r, %to : tensor<?xi32>, tensor<?xi32>
    }
    """
    data, counts, dest = numbers(40), np.array([2, 0, 4, 1, 3], np.int64), numbers(25) + 100
    results, report = run(text, [data, 8, counts, dest, 3])
    expected = [data[8 * s : 8 * s + 2 * n] for s, n in enumerate(counts)]
    assert (results[0] == np.concatenate([dest[:3], *expected, dest[23:]])).all()
    assert (results[1] == dest).all()
    assert report.host_seconds > 0
    with pytest.raises(UserError, match=r"segment 2 keeps 10 elements; segments have room for 8"):
        run(text, [data, 8, np.array([2, 0, 5], np.int64), dest, 0])
    for position in (6, -1):
        with pytest.raises(UserError, match=rf"20 elements from position {position} on; .* has 25"):
            run(text, [data, 8, counts, dest, position])


GATHER = """
func.func @main(%d: tensor<?xi32>, %n: index, %c: tensor<?xi64>, %to: tensor<?xi32>, %at: index)
    -> (tensor<?xi32>, tensor<?xi32>) {
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
  %each = arith.constant 24 : index
  %set = upmem.alloc %four : !upmem.dpus
  upmem.push %d[%zero] to %set at 64 count %each stride %each : tensor<?xi32>
  %r = upmem.gather %set at 64 segments %n counts %c scale 2 into %to[%at]
    : tensor<?xi64> -> tensor<?xi32>
  func.return %r, %to : tensor<?xi32>, tensor<?xi32>
}
"""


def test_gather_puts_the_start_of_every_segment_into_place() -> None:
    """Four DPUs of three segments of eight elements; the last segments are empty."""
    data, dest = numbers(96), numbers(99) + 1000
    counts = np.array([2, 0, 4, 1, 3, 0, 0, 0, 0, 4, 4, 0], np.int64)
    results, report = run(GATHER, [data, 8, counts, dest, 5])
    expected = [data[8 * s : 8 * s + 2 * n] for s, n in enumerate(counts)]
    kept = 2 * int(counts.sum())
    assert (results[0] == np.concatenate([dest[:5], *expected, dest[5 + kept :]])).all()
    assert (results[1] == dest).all()
    assert report.dpu_to_host.bytes == 96 * 4
    assert report.dpu_to_host.seconds == pull_seconds(small_machine(), "measured", 4, 96)


def test_gather_of_no_segments_moves_nothing() -> None:
    dest = numbers(3)
    results, report = run(GATHER, [numbers(96), 8, np.zeros(0, np.int64), dest, 0])
    assert (results[0] == dest).all()
    assert report.dpu_to_host.bytes == 0


@pytest.mark.parametrize(
    ("capacity", "counts", "position", "message"),
    [
        (8, [1] * 11, 0, "'upmem.gather' of 11 segments; 4 DPUs have equally many each"),
        (7, [1] * 12, 0, "'upmem.gather' of 84 bytes a DPU; host transfers move a multiple of 8"),
        (-8, [1] * 12, 0, "capacity of 'upmem.gather' is -8; it is 0 or more"),
        (8, [1] * 11 + [5], 0, "segment 11 keeps 10 elements; segments have room for 8"),
        (8, [4] * 12, 4, "96 elements from position 4 on; the destination has 99"),
    ],
)
def test_gathers_that_are_refused(
    capacity: int, counts: list[int], position: int, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        args = [numbers(96), capacity, np.array(counts, np.int64), numbers(99), position]
        run(GATHER, args)


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
