"""Groups whose rows are longer than what a tasklet reads at once."""

from pathlib import Path

import numpy as np
import pytest
from upmem_lowering import INTEGERS, outputs, vector

from cim_opt.dialects.pattern import GroupOp
from cim_opt.lowering.upmem_stream import streamed_reduce
from cim_opt.tools.load_module import parse_text

DOT = """
func.func @main(%m: tensor<?xT>, %n: tensor<?xT>, %v: tensor<GxT>, %k: T)
    -> (tensor<?xT>, tensor<?xi1>) {
  %y, %z = pattern.group<G>(%a in %m : tensor<?xT>, %b in %n : tensor<?xT>)
      shared(%w = %v : tensor<GxT>, %c = %k : T) -> (tensor<?xT>, tensor<?xi1>) {
    %two = arith.constant 2 : T
    %start = arith.muli %c, %two : T
    %s = pattern.reduce(%x in %a : tensor<GxT>, %p in %w : tensor<GxT>, %q in %b : tensor<GxT>)
        init(%acc = %start : T) shared(%d = %c : T) {
      %u = arith.muli %x, %p : T
      %r = arith.addi %u, %q : T
      %o = arith.xori %r, %d : T
      %t = arith.addi %acc, %o : T
      pattern.yield %t : T
    } combine(%l, %h) {
      %t = arith.addi %l, %h : T
      pattern.yield %t : T
    }
    %least = arith.maxsi %s, %two : T
    %odd = arith.cmpi sgt, %s, %two : T
    pattern.yield %least, %odd : T, i1
  }
  func.return %y, %z : tensor<?xT>, tensor<?xi1>
}
"""

LENGTHS = {"i8": (2056, 4000), "i16": (1028, 4096), "i32": (514, 3000), "i64": (257, 1000)}


@pytest.mark.parametrize("element", LENGTHS)
@pytest.mark.parametrize("mram", [262144, 67108864])
def test_rows_in_pieces(element: str, mram: int, tmp_path: Path) -> None:
    """In one round, and in several; on little WRAM."""
    machine = tmp_path / "machine.toml"
    fields = f"dpus = 3\nwram_bytes = 16384\ntasklets_max = 12\nmram_bytes = {mram}\n"
    machine.write_text(f'base = "upmem-2560"\nname = "small"\n{fields}')
    for length in LENGTHS[element]:
        text = DOT.replace("G", str(length)).replace("T", element)
        for rows in (0, 1, 2, 9, 31):
            m, n = (vector(element, rows * length, seed) for seed in (1, 2))
            v, k = vector(element, length), INTEGERS[element](3)
            least, odd = outputs(text, m, n, v, k, machine=str(machine))
            with np.errstate(over="ignore"):
                terms = (m.reshape(rows, length) * v + n.reshape(rows, length)) ^ k
                sums = terms.sum(axis=1, dtype=k.dtype) + k * INTEGERS[element](2)
            assert (least == np.maximum(sums, 2)).all()
            assert (odd == (sums > 2)).all()


def group(text: str) -> GroupOp:
    """The group of a program."""
    (found,) = [op for op in parse_text(text, "test.mlir").walk() if isinstance(op, GroupOp)]
    return found


def dot(length: int, element: str = "i32") -> str:
    return DOT.replace("G", str(length)).replace("T", element)


def test_which_rows_go_in_pieces() -> None:
    assert streamed_reduce(group(dot(514))) is not None
    # A transfer reads the row whole; rows that start inside of 8 bytes.
    assert streamed_reduce(group(dot(512))) is None
    assert streamed_reduce(group(dot(515))) is None
    # Something else sees the row too.
    seen = "%c0 = arith.constant 0 : index\n%e = tensor.extract %a[%c0] : tensor<514xi32>\n"
    more = dot(514).replace("%two = arith", seen + "%two = arith")
    assert streamed_reduce(group(more)) is None
