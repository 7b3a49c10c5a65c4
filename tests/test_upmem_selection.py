"""Instructions that the selection takes for loops and idioms, counted by hand."""

import pytest
from upmem_programs import module_of
from xdsl.dialects import scf

from cim_opt.dialects import upmem
from cim_opt.errors import UserError
from cim_opt.hardware.upmem import load_machine
from cim_opt.simulators.upmem_selection import Addressing, Selection, select

MACHINE = load_machine("upmem-1")

HEAD = """
  %t = upmem.tasklet_id : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = arith.constant 64 : index
  %z = arith.constant 0 : i32
  %k = arith.constant 10 : i32
  %a = upmem.wram : memref<64xi32, $W>
  %b = upmem.wram : memref<64xi32, $W>
  %c = upmem.wram : memref<64xi32, $W>
  %s = upmem.wram : memref<64xi8, $W>
"""


def selection(body: str, addressing: Addressing = "pointer") -> tuple[upmem.KernelOp, Selection]:
    module = module_of(f"upmem.kernel @k tasklets 1 () {{ {HEAD} {body} upmem.return }}")
    kernel = next(op for op in module.ops if isinstance(op, upmem.KernelOp))
    return kernel, select(kernel, MACHINE, addressing)


def iteration(body: str, addressing: Addressing = "pointer", args: str = "") -> int:
    """Instructions of one iteration of a loop over %i, without branches inside."""
    head = f"scf.for %i = %c0 to %n step %c1 {args}" if args else "scf.for %i = %c0 to %n step %c1"
    kernel, found = selection((f"%r = {head}" if args else head) + " {" + body + "}", addressing)
    loop = next(op for op in kernel.body.block.ops if isinstance(op, scf.ForOp))
    return found.blocks[loop.body.block]


def straight(body: str) -> int:
    """Instructions of operations at the top of a kernel, without the return."""
    kernel, found = selection(body)
    return found.blocks[kernel.body.block] - 1


def load(name: str, array: str, index: str) -> str:
    return f"%{name} = memref.load %{array}[%{index}] : memref<64xi32, $W>\n"


def store(name: str, array: str, index: str) -> str:
    return f"memref.store %{name}, %{array}[%{index}] : memref<64xi32, $W>\n"


ADD = load("x", "a", "i") + load("y", "b", "i") + "%v = arith.addi %x, %y : i32\n"


@pytest.mark.parametrize(
    ("addressing", "expected"), [("pointer", 8), ("index", 9), ("compiled", 9)]
)
def test_vector_addition(addressing: Addressing, expected: int) -> None:
    """Two loads, addition, store; three pointers or addresses; count down, or bump and branch."""
    assert iteration(ADD + store("v", "c", "i"), addressing) == expected


@pytest.mark.parametrize(
    ("addressing", "expected"), [("pointer", 7), ("index", 8), ("compiled", 7)]
)
def test_sum_of_two_arrays(addressing: Addressing, expected: int) -> None:
    body = ADD + "%w = arith.addi %p, %v : i32\nscf.yield %w : i32\n"
    assert iteration(body, addressing, "iter_args(%p = %z) -> (i32)") == expected


def test_accesses_at_a_constant_distance_share_a_pointer() -> None:
    next_ = "%j = arith.addi %i, %c1 : index\n" + load("y", "a", "j")
    both = load("x", "a", "i") + next_
    assert iteration(load("x", "a", "i")) == 1 + 1 + 1
    assert iteration(both) == 2 + 1 + 1  # the addition is the offset in the instruction
    scaled = "%j = arith.muli %i, %c2 : index\n" + load("y", "a", "j")
    assert iteration(scaled) == 1 + 1 + 1  # the pointer is bumped by 8 bytes
    assert iteration(load("x", "a", "i") + scaled) == 2 + 2 + 1


def test_an_induction_variable_with_another_use_is_kept() -> None:
    used = load("x", "a", "i") + "%v = arith.index_cast %i : index to i32\n" + store("v", "a", "i")
    assert iteration(used) == 2 + 1 + 2


def test_addresses_that_data_decide() -> None:
    table = load("x", "a", "i") + "%j = arith.index_cast %x : i32 to index\n"
    lookup = table + load("y", "b", "j")
    assert iteration(lookup) == (1 + 1) + (1 + 1) + 1
    # Load and store at one address make it once.
    assert iteration(lookup + store("y", "b", "j")) == (1 + 1) + (1 + 1 + 1) + 1


def test_branches_fuse_with_comparisons() -> None:
    x = load("x", "a", "t") + "\n"
    base = straight(x)
    compare = "%p = arith.cmpi sgt, %x, %k : i32\n"
    branch = "scf.if %p { " + store("z", "b", "t") + "}\n"
    assert base == 2
    assert straight(x + compare) == base + 1
    assert straight(x + compare + branch) == base + 1  # its block is counted by itself
    assert straight(x + compare + branch + branch) == base + 1 + 1 + 1
    low = "%l = arith.andi %x, %k : i32\n%p = arith.cmpi eq, %l, %z : i32\n"
    assert straight(x + low + branch) == base + 1
    choose = "%v = arith.select %p, %x, %k : i32\n"
    assert straight(x + compare + choose) == base + 2


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("%v = arith.extui %e : i8 to i32", 0),
        ("%v = arith.extui %e : i8 to i64", 1),
        ("%v = arith.extsi %e : i8 to i64", 1),
        ("%f = arith.addi %e, %e : i8\n%v = arith.extsi %f : i8 to i32", 1 + 1),
        ("%f = arith.cmpi eq, %e, %e : i8\n%v = arith.extui %f : i1 to i32", 1),
        ("%f = arith.index_cast %t : index to i8\nmemref.store %f, %s[%c0] : memref<64xi8, $W>", 1),
        ("%f = arith.index_cast %t : index to i8\n%g = arith.addi %f, %f : i8", 1 + 1),
    ],
)
def test_extensions_and_truncations(operation: str, expected: int) -> None:
    first = "%e = memref.load %s[%c0] : memref<64xi8, $W>\n"
    assert straight(first + operation) == 1 + expected


def test_multiplications() -> None:
    x = load("x", "a", "c0")
    assert straight(x + "%v = arith.muli %x, %k : i32") == 1 + 2  # x * 10: add, shift
    kernel, found = selection(x + "%v = arith.muli %x, %x : i32")
    assert [cost.kind for cost in found.operands.values()] == ["mul"]
    assert found.blocks[kernel.body.block] == 1 + 1 + 1  # and a move: both arguments are %x


def test_transfers_and_critical_sections() -> None:
    array = "%m = upmem.mram 0 : memref<256xi32, $M>\n"
    types = "memref<256xi32, $M>, memref<64xi32, $W>\n"
    fixed = f"upmem.mram_read %m[%c0] to %a[%c0] count %n : {types}"
    assert straight(array + fixed) == 1
    moving = f"upmem.mram_read %m[%t] to %a[%c0] count %t : {types}"
    assert straight(array + moving) == 1 + 2 + 1
    assert straight(array + moving + moving) == (1 + 2 + 1) + (1 + 2)
    assert straight("upmem.critical %c0 { " + store("z", "a", "c0") + "}") == 2


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(UserError, match=r"no instruction cost for 'math\.sqrt' in a kernel"):
        selection("%f = arith.constant 2.0 : f32\n%g = math.sqrt %f : f32")
    with pytest.raises(UserError, match=r"'arith\.mulsi_extended'.*on 128 bits"):
        selection("%w = arith.constant 1 : i64\n%l, %h = arith.mulsi_extended %w, %w : i64")


def nested(body: str) -> tuple[int, int]:
    """Instructions that an outer loop takes in front of it, and in one iteration of it.

    Its body has a loop that stores once, for which 1 is left out in front of it.
    """
    inner = "scf.for %j = %c0 to %n step %c1 { " + store("z", "a", "c0") + "}"
    head = "%n24 = arith.constant 24 : index\nscf.for %i = %c0 to %n step %c1 {"
    kernel, found = selection(head + body + inner + "}")
    op = next(op for op in kernel.body.block.ops if isinstance(op, scf.ForOp))
    return found.blocks[kernel.body.block] - 1, found.blocks[op.body.block] - 1


def test_sums_linear_in_a_counter_are_one_addition() -> None:
    assert nested("") == (1, 1)  # counts down
    use = "%x = arith.xori %at, %c1 : index\n"
    times, plus = "%r = arith.muli %i, %n24 : index\n", "%at = arith.addi %t, %r : index\n"
    # Two instructions for * 24 and one for + become one; the counter counts down.
    assert nested(times + plus + use) == (1 + 1, 1 + 1 + 1)
    # The counter itself is used: it counts up.
    other = "%y = arith.xori %i, %c1 : index\n"
    assert nested(times + plus + use + other) == (1 + 1, 2 + 1 + 1 + 1)
    # One addition of the counter saves nothing but the compare.
    assert nested("%at = arith.addi %t, %i : index\n" + use) == (1 + 1, 1 + 1 + 1)
    # What the loop computes otherwise is not linear.
    square = "%r = arith.andi %i, %n24 : index\n"
    assert nested(square + plus + use) == (1, 2 + 1 + 1 + 1)
    # Both subtractions and shifts are.
    shift = "%r = arith.shli %i, %c2 : index\n%at = arith.subi %r, %t : index\n"
    assert nested(shift + use) == (1 + 1, 1 + 1 + 1)


def test_products_with_a_run_time_number_stay_calls() -> None:
    product = "%r = arith.muli %i, %t : index\n"
    kernel, found = selection("scf.for %i = %c0 to %n step %c1 {" + product + "}")
    body = next(op for op in kernel.body.block.ops if isinstance(op, scf.ForOp)).body.block
    assert [cost.kind for cost in found.operands.values()] == ["mul"]
    assert found.blocks[body] == 2 + 2  # the loop; two moves, for both are needed again


def moves(operands: str, before: str = "") -> int:
    """Moves of a multiplication in a loop."""
    x = load("x", "a", "i") + load("y", "b", "i")
    product = f"%v = arith.muli {operands} : i32\n"
    outside = "%w = memref.load %c[%c0] : memref<64xi32, $W>\n"
    head = outside + "scf.for %i = %c0 to %n step %c1 {"
    kernel, found = selection(head + x + product + before + "}")
    body = next(op for op in kernel.body.block.ops if isinstance(op, scf.ForOp)).body.block
    return found.blocks[body] - (1 + 1) - (1 + 1) - 1  # loads, pointers, loop


def test_operands_of_a_routine_are_moved_unless_they_are_made_for_it() -> None:
    assert moves("%x, %y") == 0
    assert moves("%x, %w") == 1  # from outside the loop
    assert moves("%x, %x") == 1  # one argument is the other's copy
    assert moves("%x, %y", "%u = arith.addi %x, %z : i32\n") == 1 + 1  # and the addition


def test_the_compiler_uses_indices_where_a_loop_always_stores() -> None:
    compare = load("x", "a", "i") + "%p = arith.cmpi sgt, %x, %k : i32\n"
    sometimes = compare + "scf.if %p { " + store("x", "b", "c0") + "}\n"
    always = load("x", "a", "i") + store("x", "b", "c0")
    # Load, compare and branch; a pointer; count down.
    assert iteration(sometimes, "compiled") == 1 + 1 + 1 + 1
    # Load, store; an address; bump, compare and branch.
    assert iteration(always, "compiled") == 2 + 1 + 2
    assert iteration(always, "pointer") == 2 + 1 + 1


@pytest.mark.parametrize(("bits", "expected"), [(8, 2), (16, 2), (32, 1), (64, 3)])
def test_a_test_of_bits_by_width(bits: int, expected: int) -> None:
    """And, and branch: one instruction where a whole register is tested."""
    type_ = f"i{bits}"
    text = f"""
      %m = upmem.wram : memref<64x{type_}, $W>
      %zero = arith.constant 0 : {type_}
      %one = arith.constant 1 : {type_}
      %x = memref.load %m[%c0] : memref<64x{type_}, $W>
      %low = arith.andi %x, %one : {type_}
      %even = arith.cmpi eq, %low, %zero : {type_}
      scf.if %even {{
        memref.store %x, %m[%c1] : memref<64x{type_}, $W>
      }}
    """
    assert straight(text) == 1 + expected


def test_first_values_of_a_loop_are_moved_when_they_are_used_again() -> None:
    def front(init: str, after: str = "") -> int:
        body = "%w = arith.addi %p, %z : i32\nscf.yield %w : i32\n"
        loop = f"%r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %{init}) -> (i32) {{ {body} }}"
        return straight(load("x", "a", "c0") + loop + after)

    assert front("z") == 1 + 1 + 1  # load; counter; a constant
    assert front("x") == 1 + 1
    assert front("x", "%y = arith.addi %x, %x : i32\n") == 1 + 1 + 1 + 1
