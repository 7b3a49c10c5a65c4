"""What a kernel or a host program may not do, each refused in one line that names the place."""

import re
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from upmem_programs import module_of, run, run_kernel, small_machine

from cim_opt.errors import UserError
from cim_opt.simulators.upmem import UpmemSimulator

CONSTANTS = "\n".join(
    f"%c{number} = arith.constant {number} : index"
    for number in (*range(9), 16, 20, 32, 60, 256, 257, 512, 513)
)

START = f"""
  {CONSTANTS}
  %z = arith.constant 0 : i32
  %t = upmem.tasklet_id : index
  %a = upmem.mram 0 : memref<1024xi32, $M>
  %w = upmem.wram : memref<600xi32, $W>
  %h = upmem.wram shared : memref<64xi32, $W>
"""

A, B, H = "memref<1024xi32, $M>", "memref<600xi32, $W>", "memref<64xi32, $W>"


def refused(body: str, *, dpus: int = 2, tasklets: int = 4, start: str = START) -> str:
    """The message of the error that a kernel raises, with its place."""
    with pytest.raises(UserError) as info:
        run_kernel(start + body, dpus=dpus, tasklets=tasklets)
    text = str(info.value)
    assert "\n" not in text
    assert re.match(r"kernel\.mlir:\d+:\d+: error: ", text), text
    return info.value.message()


def allowed(body: str, *, dpus: int = 2, tasklets: int = 4) -> None:
    """The same kernel, made right, runs."""
    run_kernel(START + body, dpus=dpus, tasklets=tasklets)


# -- bounds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        (f"%x = memref.load %w[%i] : {B}", "memref.load"),
        (f"memref.store %z, %w[%i] : {B}", "memref.store"),
    ],
)
def test_private_wram_index_out_of_range(operation: str, name: str) -> None:
    body = """
      %k = arith.constant {first} : index
      %i = arith.addi %t, %k : index
    """
    allowed(body.format(first=596) + operation)
    message = refused(body.format(first=598) + operation)
    assert message == (
        f"'{name}' on DPU 0, tasklet 2: index 600 of a WRAM buffer is out of range; "
        "it has 600 elements; check the index, or allocate a larger buffer"
    )
    message = refused(body.format(first=-1) + operation)
    assert f"'{name}' on DPU 0, tasklet 0: index -1" in message


def test_uniform_and_shared_wram_index_out_of_range() -> None:
    body = "%i = arith.constant {i} : index\n%x = memref.load %h[%i] : " + H
    allowed(body.format(i=63))
    assert "index 64 of a WRAM buffer" in refused(body.format(i=64))
    assert "index -1 of a WRAM buffer" in refused(body.format(i=-1))


def test_lanes_that_do_not_run_may_have_any_index() -> None:
    body = """
      %i = arith.muli %t, %c512 : index
      %small = arith.cmpi ult, %i, {limit} : index
      scf.if %small {{
        memref.store %z, %w[%i] : memref<600xi32, $W>
        %x = memref.load %w[%i] : memref<600xi32, $W>
      }}
    """
    allowed(body.format(limit="%c513"))
    wide = "%much = arith.constant 1025 : index" + body.format(limit="%much")
    assert "tasklet 2: index 1024" in refused(wide)


def test_mram_array_is_left() -> None:
    body = """
      %k = arith.constant {first} : index
      upmem.mram_read %a[%k] to %w[%c0] count %c32 : memref<1024xi32, $M>, memref<600xi32, $W>
    """
    allowed(body.format(first=992))
    assert refused(body.format(first=994)) == (
        "'upmem.mram_read' on DPU 0, tasklet 0: elements 994 to 1025 of the MRAM array at byte 0 "
        "are out of range; it has 1024 elements; check the index, or declare a longer array"
    )
    assert "elements -2 to 29 of the MRAM array" in refused(body.format(first=-2))


def test_transfer_leaves_the_wram_buffer() -> None:
    body = """
      %k = arith.constant {first} : index
      upmem.mram_read %a[%c0] to %w[%k] count %c32 : memref<1024xi32, $M>, memref<600xi32, $W>
    """
    allowed(body.format(first=568))
    assert "elements 570 to 601 of a WRAM buffer is out of range" in refused(body.format(first=570))


def test_wrong_dpu_and_tasklet_are_named() -> None:
    """Only DPU 2's tasklet 3 goes wrong: its index comes from memory."""
    values = np.zeros(32, np.int64)
    values[2 * 8 + 3] = 700
    body = """
      %t = upmem.tasklet_id : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %a = upmem.mram 0 : memref<8xi64, $M>
      %w = upmem.wram : memref<1xi64, $W>
      upmem.mram_read %a[%t] to %w[%c0] count %c1 : memref<8xi64, $M>, memref<1xi64, $W>
      %v = memref.load %w[%c0] : memref<1xi64, $W>
      %i = arith.index_cast %v : i64 to index
      %x = memref.load %w[%i] : memref<1xi64, $W>
    """
    with pytest.raises(UserError, match=r"'memref.load' on DPU 2, tasklet 3: index 700"):
        run_kernel(body, [values], dpus=4, tasklets=8)


# -- DMA -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["read", "write"])
@pytest.mark.parametrize(
    ("index", "at", "count", "error"),
    [
        ("%c0", "%c0", "%c1", r"a transfer of 4 bytes; a DMA moves 8 to 2048 bytes"),
        ("%c0", "%c0", "%c0", r"a transfer of 0 bytes; a DMA moves 8 to 2048 bytes"),
        ("%c0", "%c0", "%c3", r"a transfer of 12 bytes; a DMA moves a multiple of 8 bytes"),
        ("%c0", "%c0", "%c513", r"a transfer of 2052 bytes; a DMA moves 8 to 2048 bytes"),
        ("%c1", "%c0", "%c2", r"misaligned MRAM address: byte 4 of its array"),
        ("%c0", "%c3", "%c2", r"misaligned WRAM address: byte 12 of its array"),
    ],
)
def test_dma_sizes_and_addresses(
    operation: str, index: str, at: str, count: str, error: str
) -> None:
    move = {
        "read": "upmem.mram_read %a[{}] to %w[{}] count {} : " + f"{A}, {B}",
        "write": "upmem.mram_write %w[{1}] to %a[{0}] count {2} : " + f"{B}, {A}",
    }[operation]
    message = refused(move.format(index, at, count), tasklets=1)
    assert re.search(rf"'upmem.mram_{operation}' on DPU 0, tasklet 0: {error}", message), message
    allowed(move.format("%c2", "%c4", "%c512"), tasklets=1)


def test_a_size_that_is_wrong_on_one_lane_only() -> None:
    body = f"""
      %n = arith.subi %c6, %t : index
      upmem.mram_read %a[%c0] to %w[%c0] count %n : {A}, {B}
    """
    assert "tasklet 1: a transfer of 20 bytes" in refused(body)


# -- sizes ---------------------------------------------------------------------------------------


def test_wram_overflow_says_the_numbers() -> None:
    body = "%w = upmem.wram : memref<{n}xi32, $W>\n%h = upmem.wram shared : memref<3xi8, $W>"
    run_kernel(body.format(n=760), tasklets=16)
    message = refused(body.format(n=762), tasklets=16, start="")
    assert message == (
        "kernel @k takes 48776 bytes of WRAM: 16 tasklets x 3048 bytes + 8 shared; "
        "48732 bytes are left by 16 stacks; use smaller blocks or fewer tasklets"
    )


def test_too_many_tasklets() -> None:
    assert refused("", tasklets=25, start="") == (
        "kernel @k has 25 tasklets; upmem-2560 runs at most 24 on a DPU; use fewer"
    )


def test_mram_array_past_the_end_of_mram() -> None:
    body = "%a = upmem.mram {offset} : memref<256xi32, $M>"
    run_kernel(body.format(offset=67108864 - 1024))
    message = refused(body.format(offset=67108864 - 1016), start="")
    assert (
        "the array ends at byte 67108872; the MRAM of a DPU of upmem-2560 has 67108864" in message
    )


def test_mram_arrays_that_overlap() -> None:
    body = "%a = upmem.mram 0 : memref<256xi32, $M>\n%b = upmem.mram {offset} : memref<8xi8, $M>"
    run_kernel(body.format(offset=1024))
    run_kernel(body.format(offset=0))
    message = refused(body.format(offset=1016), start="")
    assert "the array at byte 1016 overlaps the one at byte 0; which ends at byte 1024" in message


HOST = """
func.func @main(%a: tensor<?xi32>, %n: index, %s: index) -> tensor<?xi32> {{
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %set = upmem.alloc %c4 : !upmem.dpus
  {body}
  func.return %a : tensor<?xi32>
}}
upmem.kernel @k tasklets 1 () {{
  upmem.return
}}
"""


def host_refused(body: str, args: Sequence[Any] = (2, 2)) -> str:
    """The message of the error that host operations raise."""
    with pytest.raises(UserError) as info:
        run(HOST.format(body=body), [np.arange(8, dtype=np.int32), *args])
    assert str(info.value).startswith("kernel.mlir:")
    return info.value.message()


PUSH = "upmem.push %a[%c0] to %set at {offset} count %n stride %s : tensor<?xi32>\n"
PULL = "%r = upmem.pull %set at {offset} count %n into %a[%c0] : tensor<?xi32>\n"


def test_host_transfers_are_checked() -> None:
    push, pull = PUSH.format(offset=0), PULL.format(offset=0)
    run(HOST.format(body=push + pull), [np.arange(8, dtype=np.int32), 2, 2])
    for body in (push, push + pull):
        assert "of 4 bytes a DPU; host transfers move a multiple of 8" in host_refused(body, (1, 1))
    assert "of -8 bytes a DPU" in host_refused(push, (-2, 2))
    assert "stride of 'upmem.push' is -2; it is 0 or more" in host_refused(push, (2, -2))
    end = 67108864 - 8
    run(HOST.format(body=PUSH.format(offset=end)), [np.arange(8, dtype=np.int32), 2, 2])
    assert "ends at byte 67108872 of MRAM" in host_refused(PUSH.format(offset=end), (4, 4))
    assert "ends at byte 67108872 of MRAM" in host_refused(PULL.format(offset=end), (4, 4))
    wide = f"upmem.broadcast %a to %set at {end} : tensor<?xi32>"
    assert "ends at byte 67108888 of MRAM" in host_refused(wide)


def test_pull_of_what_was_never_written() -> None:
    body = PUSH.format(offset=64) + PULL.format(offset=72)
    assert "'upmem.pull' of bytes 72 to 79 of MRAM; nothing was ever written there" in (
        host_refused(body)
    )
    assert "nothing was ever written" in host_refused(PULL.format(offset=0))
    gather = """%c = arith.constant dense<1> : tensor<4xi64>
      %r = upmem.gather %set at 0 segments %n counts %c scale 1 into %a[%c0]
        : tensor<4xi64> -> tensor<?xi32>"""
    assert "'upmem.gather' of bytes 0 to 7 of MRAM; nothing was ever" in host_refused(gather)


def test_dpus_in_use_or_freed() -> None:
    start = "%t = upmem.launch @k on %set () : () -> !upmem.token\n"
    wait = "upmem.wait %t : !upmem.token\n"
    push = PUSH.format(offset=0)
    run(HOST.format(body=start + wait + push), [np.arange(8, dtype=np.int32), 2, 2])
    assert "'upmem.push' while a kernel runs on the DPUs" in host_refused(start + push)
    free = "upmem.free %set : !upmem.dpus\n"
    assert "'upmem.push' on DPUs that were freed" in host_refused(free + push)


def test_more_dpus_than_the_machine_has() -> None:
    body = "%k = arith.constant 5 : index\n%more = upmem.alloc %k : !upmem.dpus"
    assert host_refused(body) == (
        "'upmem.alloc' of 5 DPUs; upmem-2560 has 4; use fewer DPUs or a larger machine"
    )


def test_launches_of_what_is_not_there() -> None:
    start = "%t = upmem.launch @{name} on %set ({args}) : ({types}) -> !upmem.token\n"
    assert "there is no kernel @q; the module has @k" in host_refused(
        start.format(name="q", args="", types="")
    )
    assert "launch of @k with (index); it takes ()" in host_refused(
        start.format(name="k", args="%n", types="index")
    )


# -- races ---------------------------------------------------------------------------------------

STORE = f"memref.store %z, %h[%i] : {H}\n"
LOAD = f"%x = memref.load %h[%i] : {H}\n"


def test_two_tasklets_store_to_one_element() -> None:
    allowed("%i = arith.addi %t, %c0 : index\n" + STORE)
    message = refused("%i = arith.divui %t, %c2 : index\n" + STORE)
    assert re.match(
        r"'memref.store' on DPU 0, tasklet [01]: data race: writes element 0 of a shared WRAM "
        r"buffer, which tasklet [01] uses in the same phase; no barrier is between, and no mutex "
        r"is held by both; put a barrier between",
        message,
    ), message
    assert "data race" in refused("%i = arith.addi %c0, %c0 : index\n" + STORE)


@pytest.mark.parametrize("first", ["store", "load"])
def test_a_load_and_a_store_need_a_barrier_between(first: str) -> None:
    """Tasklet t stores element t and loads element t+1."""
    one = f"memref.store %z, %h[%t] : {H}\n"
    two = f"%j = arith.addi %t, %c1 : index\n%x = memref.load %h[%j] : {H}\n"
    if first == "load":
        one, two = two, one
    allowed(one + "upmem.barrier\n" + two)
    message = refused(one + two)
    assert "data race" in message
    assert re.search(r"which tasklet \d uses", message), message


def test_a_load_that_all_tasklets_do_alike() -> None:
    """A uniform index: one store by tasklet 0, loads by all."""
    store = f"""
      %first = arith.cmpi eq, %t, %c0 : index
      scf.if %first {{
        memref.store %z, %h[%c5] : {H}
      }}
    """
    load = f"%x = memref.load %h[%c5] : {H}\n"
    allowed(store + "upmem.barrier\n" + load)
    assert "data race" in refused(store + load)
    allowed(store + load, tasklets=1)


def test_critical_sections_protect_under_one_mutex_only() -> None:
    section = f"""
      upmem.critical {{mutex}} {{{{
        %x = memref.load %h[%c0] : {H}
        memref.store %z, %h[%c0] : {H}
      }}}}
    """
    allowed(section.format(mutex="%c1"))
    allowed(section.format(mutex="%c1") + section.format(mutex="%c1"))
    assert "data race" in refused(section.format(mutex="%c1") + section.format(mutex="%c2"))
    assert "data race" in refused(section.format(mutex="%t"))
    assert "data race" in refused(section.format(mutex="%c1") + f"%y = memref.load %h[%c0] : {H}")
    allowed(section.format(mutex="%c1") + f"upmem.barrier\n%y = memref.load %h[%c0] : {H}")


def test_mutexes_that_the_machine_does_not_have() -> None:
    load = f"%x = memref.load %w[%c0] : {B}"
    section = f"upmem.critical %c60 {{ {load} }}"
    assert "mutex 60; upmem-2560 has mutexes 0 to 55" in refused(section)
    assert "a critical section in another one" in refused(
        f"upmem.critical %c1 {{ upmem.critical %c2 {{ {load} }} }}"
    )


def test_transfers_to_and_from_shared_wram_race_too() -> None:
    read = f"upmem.mram_read %a[%c0] to %h[%i] count %c2 : {A}, {H}\n"
    apart = "%i = arith.muli %t, %c2 : index\n"
    together = "%i = arith.addi %c0, %c0 : index\n"
    allowed(apart + read)
    assert "data race: writes element 0 of a shared WRAM buffer" in refused(together + read)
    load = f"%x = memref.load %h[%t] : {H}\n"
    allowed(apart + read + "upmem.barrier\n" + load)
    assert "data race" in refused(apart + read + load)


@pytest.mark.parametrize("dpus", [1, 40])
def test_mram_races(dpus: int) -> None:
    """Tasklets that write the same 8 bytes, or read what another one writes."""
    write = f"upmem.mram_write %w[%c0] to %a[%i] count %c4 : {B}, {A}\n"
    read = f"upmem.mram_read %a[%j] to %w[%c0] count %c4 : {A}, {B}\n"
    apart = "%i = arith.muli %t, %c4 : index\n%j = arith.addi %i, %c4 : index\n"
    allowed(apart + write, dpus=dpus)
    allowed(apart + read, dpus=dpus)
    allowed(apart + write + "upmem.barrier\n" + read, dpus=dpus)
    message = refused(apart + write + read, dpus=dpus)
    assert re.search(r"data race: reads bytes \d+ to \d+ of MRAM, which tasklet \d uses", message)
    assert "data race" in refused(apart + read + write, dpus=dpus)
    close = "%i = arith.muli %t, %c2 : index\n"
    assert "data race: writes bytes 8 to 15 of MRAM" in refused(close + write, dpus=dpus)
    locked = "upmem.critical %c1 {\n" + write + "}\n"
    allowed(close + locked, dpus=dpus)


def test_arrays_at_one_offset_are_one_memory_for_races() -> None:
    body = f"""
      %b = upmem.mram 0 : memref<512xi64, $M>
      %v = upmem.wram : memref<8xi64, $W>
      %i = arith.muli %t, %c2 : index
      upmem.mram_write %w[%c0] to %a[%i] count %c2 : {B}, {A}
      {{barrier}}
      upmem.mram_read %b[%c1] to %v[%c0] count %c1 : memref<512xi64, $M>, memref<8xi64, $W>
    """
    allowed(body.format(barrier="upmem.barrier"))
    assert "data race: reads bytes 8 to 15" in refused(body.format(barrier=""))


# -- the rest ------------------------------------------------------------------------------------


def test_a_kernel_that_does_not_fit_the_instruction_memory() -> None:
    def additions(count: int) -> str:
        return "\n".join(f"%x{n} = arith.addi %t, %c{n % 9} : index" for n in range(count))

    allowed(additions(4090))
    assert "instruction memory of upmem-2560 holds 4096; use loops" in refused(additions(4100))
    # Software floating point is called, not copied.
    allowed("\n".join(f"%f{n} = arith.uitofp %z : i32 to f32" for n in range(900)))


def test_a_buffer_that_is_smaller_than_a_transfer() -> None:
    body = """
      %v = upmem.wram : memref<4xi32, $W>
      upmem.mram_read %a[%c0] to %v[{at}] count %c8 : memref<1024xi32, $M>, memref<4xi32, $W>
    """
    for at in ("%c0", "%even"):
        even = "%even = arith.muli %t, %c2 : index" + body.format(at=at)
        assert "elements 0 to 7 of a WRAM buffer is out of range" in refused(even)


def test_a_loop_that_does_not_count_up() -> None:
    body = "scf.for %i = %c0 to %c8 step {step} { }"
    allowed(body.replace("{step}", "%c1"))
    assert "'scf.for' on DPU 0, tasklet 0: step 0; a loop counts up" in refused(
        body.replace("{step}", "%c0")
    )
    assert "tasklet 0: step 0" in refused(body.replace("{step}", "%t"))


def test_elements_of_mram_cannot_be_loaded() -> None:
    assert "a DPU loads and stores elements of WRAM buffers" in refused(
        f"%x = memref.load %a[%c0] : {A}"
    )


def test_operations_that_a_dpu_does_not_have() -> None:
    assert "no instruction cost for 'scf.while' in a kernel" in refused(
        """
        %r = scf.while (%i = %c0) : (index) -> index {
          %more = arith.cmpi ult, %i, %c8 : index
          scf.condition(%more) %i : index
        } do {
        ^bb0(%i: index):
          %next = arith.addi %i, %c1 : index
          scf.yield %next : index
        }
        """
    )


def test_memory_that_was_never_written_holds_a_pattern() -> None:
    """The same wrong value each time, neither zero nor what the computer's memory held."""
    body = """
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %a = upmem.mram 0 : memref<8xi32, $M>
      %c = upmem.mram 1048576 : memref<4xi32, $M>
      %w = upmem.wram : memref<2xi32, $W>
      %v = upmem.wram : memref<2xi32, $W>
      upmem.mram_read %a[%c0] to %w[%c0] count %c2 : memref<8xi32, $M>, memref<2xi32, $W>
      upmem.mram_write %w[%c0] to %c[%c0] count %c2 : memref<2xi32, $W>, memref<4xi32, $M>
      upmem.mram_write %v[%c0] to %c[%c2] count %c2 : memref<2xi32, $W>, memref<4xi32, $M>
    """
    got, _ = run_kernel(body, output=("i32", 4))
    assert (got.view(np.uint32) == 0xA5A5A5A5).all()


def test_a_machine_may_be_a_dictionary_in_the_module() -> None:
    """A machine with other limits, as a lowered module carries it."""
    machine = small_machine(2, tasklets_max=24, mutexes=3)
    items = ", ".join(f"{key} = {_attribute(value)}" for key, value in machine.to_dict().items())
    text = f"""
    module attributes {{upmem.machine = {{{items}}}}} {{
      func.func @main(%n: index) {{
        %set = upmem.alloc %n : !upmem.dpus
        func.return
      }}
    }}
    """
    module = module_of(text)
    UpmemSimulator().run(module, "main", [2])
    with pytest.raises(UserError, match=r"'upmem.alloc' of 3 DPUs; upmem-2560 has 2"):
        UpmemSimulator().run(module, "main", [3])


def _attribute(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        items = cast("list[object]", value)
        return "[" + ", ".join(map(_attribute, items)) + "]"
    return f"{value} : i64" if isinstance(value, int) else f"{value:.12e} : f64"
