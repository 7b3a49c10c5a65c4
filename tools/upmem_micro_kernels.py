"""The programs that were measured on a real DPU, as kernels in the `upmem` dialect.

What they compute and how they are laid out: github tud-ccc/cnm-cost-model (kernels written anew
from a description of their loops). All sizes are per tasklet; as in the measured programs, they are
known at run time only, and arithmetic on 2-byte values that could overflow is done in 4 bytes, as
C does. Each kernel starts with a barrier.
"""

from __future__ import annotations

from dataclasses import dataclass

WRAM = "#upmem<space wram>"
MRAM = "#upmem<space mram>"

A, B, C = 0, 16 << 20, 32 << 20
"""Where the arrays are in MRAM."""


@dataclass(frozen=True)
class MicroKernel:
    """A kernel for so many tasklets, and the sizes that it is launched with, in their order."""

    tasklets: int
    arguments: dict[str, int]
    body: str

    def text(self) -> str:
        """The operation `upmem.kernel @k`."""
        parameters = ", ".join(f"%{name}: index" for name in self.arguments)
        text = f"upmem.kernel @k tasklets {self.tasklets} ({parameters}) {{\n{self.body}\n"
        return text.replace("$W", WRAM).replace("$M", MRAM) + "upmem.return\n}"


def mram(name: str, offset: int, length: int, type_: str) -> str:
    """An MRAM array and its type alias in the text."""
    return f"%{name} = upmem.mram {offset} : memref<{length}x{type_}, $M>"


def prologue(constants: dict[str, int], type_: str) -> str:
    """Constants of the kernel, its tasklet's number, and the barrier at the start."""
    lines = [f"%{name} = arith.constant {value} : index" for name, value in constants.items()]
    lines += [
        f"%zero = arith.constant 0 : {type_}",
        f"%one = arith.constant 1 : {type_}",
        "%t = upmem.tasklet_id : index",
        "upmem.barrier",
    ]
    return "\n".join(lines)


def dma(operation: str, size: int, transfers: int, tasklets: int, slots: int) -> str:
    """A loop over slots of a tasklet's own region; each slot is moved `transfers` times.

    `slots` of 2,048 slots are visited, evenly. The measured loop takes 8 instructions besides the
    multiplication by the size with which it finds its slot, and transfers 2 more: here 6 are the
    loop's own, with moves of what it multiplies, and the rest have no other use.
    """
    elements, region = size // 8, 2048 * size // 8
    move = {
        "read": "upmem.mram_read %a[%at] to %w[%c0] count %n : {m}, {w}",
        "write": "upmem.mram_write %w[%c0] to %a[%at] count %n : {w}, {m}",
    }[operation].format(m=f"memref<{region * tasklets}xi64, $M>", w=f"memref<{elements}xi64, $W>")
    body = "\n".join([move] * transfers)
    more = 1 + (1 if transfers else 0)
    others = "\n".join(f"%x{n + 1} = arith.xori %x{n}, %i : index" for n in range(more))
    constants = {
        "c0": 0,
        "c3": 3,
        "n": elements,
        "size": size,
        "region": region,
        "step": 2048 // slots,
        "end": 2048,
    }
    return f"""
      {prologue(constants, "i64")}
      {mram("a", A, region * tasklets, "i64")}
      %w = upmem.wram : memref<{elements}xi64, $W>
      %s = arith.addi %size, %c0 : index
      %start = arith.muli %t, %region : index
      scf.for %i = %c0 to %end step %step {{
        %bytes = arith.muli %i, %s : index
        %offset = arith.shrui %bytes, %c3 : index
        %at = arith.addi %start, %offset : index
        %x0 = arith.xori %i, %c3 : index
        {others}
        {body}
      }}
    """


def barriers(count: int) -> str:
    """A number of barriers, one after another."""
    return "\n".join(["upmem.barrier"] * count)


def blocks_of(type_: str, tasklets: int, blocks: int, elements: int) -> str:
    """Constants and arrays of a kernel that goes through blocks of its tasklet's range."""
    total = tasklets * blocks * elements
    return f"""
      {prologue({"c0": 0, "c1": 1, "c4": 4}, type_)}
      {mram("a", A, total, type_)}
      {mram("b", B, total, type_)}
      {mram("c", C, total, type_)}
      %wa = upmem.wram : memref<{elements}x{type_}, $W>
      %wb = upmem.wram : memref<{elements}x{type_}, $W>
      %range = arith.muli %blocks, %block : index
      %start = arith.muli %t, %range : index
    """


def streaming(body: str, tasklets: int, blocks: int, elements: int, **more: int) -> MicroKernel:
    """A kernel that goes through blocks, launched with their number and their elements."""
    return MicroKernel(tasklets, {"blocks": blocks, "block": elements} | more, body)


def read(array: str, at: str, total: int, elements: int, type_: str) -> str:
    """DMA of one block of an array into its buffer."""
    types = f"memref<{total}x{type_}, $M>, memref<{elements}x{type_}, $W>"
    return f"upmem.mram_read %{array}[%{at}] to %w{array}[%c0] count %block : {types}"


def load(name: str, array: str, index: str, elements: int, type_: str) -> str:
    """Element of a WRAM buffer."""
    return f"%{name} = memref.load %{array}[%{index}] : memref<{elements}x{type_}, $W>"


def loop_over_blocks(body: str) -> str:
    """A loop over the blocks of a tasklet; %at is the block's first element."""
    return f"""
      %end = scf.for %k = %c0 to %blocks step %c1 iter_args(%at = %start) -> (index) {{
        {body}
        %after = arith.addi %at, %block : index
        scf.yield %after : index
      }}
    """


def vectorop(type_: str, tasklets: int, blocks: int, elements: int) -> MicroKernel:
    """c = a + b."""
    total, buffer = tasklets * blocks * elements, f"memref<{elements}x{type_}, $W>"
    body = f"""
      {blocks_of(type_, tasklets, blocks, elements)}
      %wc = upmem.wram : {buffer}
    """ + loop_over_blocks(f"""
        {read("a", "at", total, elements, type_)}
        {read("b", "at", total, elements, type_)}
        scf.for %i = %c0 to %block step %c1 {{
          {load("x", "wa", "i", elements, type_)}
          {load("y", "wb", "i", elements, type_)}
          %s = arith.addi %x, %y : {type_}
          memref.store %s, %wc[%i] : {buffer}
        }}
        upmem.mram_write %wc[%c0] to %c[%at] count %block
          : {buffer}, memref<{total}x{type_}, $M>
    """)
    return streaming(body, tasklets, blocks, elements)


def reduceop(type_: str, tasklets: int, blocks: int, elements: int) -> MicroKernel:
    """The sum of all a + b, a result of four elements for each tasklet."""
    total = tasklets * blocks * elements
    body = f"""
      {blocks_of(type_, tasklets, blocks, elements)}
      %r = upmem.mram {48 << 20} : memref<{4 * tasklets}x{type_}, $M>
      %wr = upmem.wram : memref<4x{type_}, $W>
      %sum, %end = scf.for %k = %c0 to %blocks step %c1
        iter_args(%acc = %zero, %at = %start) -> ({type_}, index) {{
        {read("a", "at", total, elements, type_)}
        {read("b", "at", total, elements, type_)}
        %part = scf.for %i = %c0 to %block step %c1 iter_args(%p = %acc) -> ({type_}) {{
          {load("x", "wa", "i", elements, type_)}
          {load("y", "wb", "i", elements, type_)}
          %s = arith.addi %x, %y : {type_}
          %q = arith.addi %p, %s : {type_}
          scf.yield %q : {type_}
        }}
        %after = arith.addi %at, %block : index
        scf.yield %part, %after : {type_}, index
      }}
      memref.store %sum, %wr[%c0] : memref<4x{type_}, $W>
      %o = arith.muli %t, %c4 : index
      upmem.mram_write %wr[%c0] to %r[%o] count %c4
        : memref<4x{type_}, $W>, memref<{4 * tasklets}x{type_}, $M>
    """
    return streaming(body, tasklets, blocks, elements)


def scan(type_: str, tasklets: int, blocks: int, elements: int) -> MicroKernel:
    """Running sums: each tasklet adds its range up, then reads it again with its offset."""
    total, buffer = tasklets * blocks * elements, f"memref<{elements}x{type_}, $W>"
    slots = f"memref<{tasklets}x{type_}, $W>"
    body = f"""
      {blocks_of(type_, tasklets, blocks, elements)}
      %h = upmem.wram shared : {slots}
      %n = arith.constant {tasklets} : index
      %own, %end = scf.for %k = %c0 to %blocks step %c1
        iter_args(%acc = %zero, %at = %start) -> ({type_}, index) {{
        {read("a", "at", total, elements, type_)}
        %part = scf.for %i = %c0 to %block step %c1 iter_args(%p = %acc) -> ({type_}) {{
          {load("x", "wa", "i", elements, type_)}
          %q = arith.addi %p, %x : {type_}
          scf.yield %q : {type_}
        }}
        %after = arith.addi %at, %block : index
        scf.yield %part, %after : {type_}, index
      }}
      memref.store %own, %h[%t] : {slots}
      upmem.barrier
      %first = scf.for %i = %c0 to %t step %c1 iter_args(%p = %zero) -> ({type_}) {{
        {load("x", "h", "i", tasklets, type_)}
        %q = arith.addi %p, %x : {type_}
        scf.yield %q : {type_}
      }}
      %last, %stop = scf.for %k = %c0 to %blocks step %c1
        iter_args(%acc = %first, %at = %start) -> ({type_}, index) {{
        {read("a", "at", total, elements, type_)}
        %part = scf.for %i = %c0 to %block step %c1 iter_args(%p = %acc) -> ({type_}) {{
          {load("x", "wa", "i", elements, type_)}
          %q = arith.addi %p, %x : {type_}
          memref.store %q, %wa[%i] : {buffer}
          scf.yield %q : {type_}
        }}
        upmem.mram_write %wa[%c0] to %c[%at] count %block
          : {buffer}, memref<{total}x{type_}, $M>
        %after = arith.addi %at, %block : index
        scf.yield %part, %after : {type_}, index
      }}
    """
    return streaming(body, tasklets, blocks, elements)


def sel(type_: str, tasklets: int, blocks: int, elements: int) -> MicroKernel:
    """Keeps even values, block by block; writes whole blocks, and a count of four elements."""
    total, buffer = tasklets * blocks * elements, f"memref<{elements}x{type_}, $W>"
    counts = 4 * tasklets * blocks
    # What is kept is counted in the type of its slot, in a register or a pair.
    wide = type_ == "i64"
    number = "i64" if wide else "index"
    place = "%at_j = arith.index_cast %j : i64 to index" if wide else ""
    index, first, step = ("at_j", "zero", "one") if wide else ("j", "c0", "c1")
    count = "kept" if wide else "m"
    cast = "" if wide else f"%m = arith.index_cast %kept : index to {type_}"
    body = f"""
      {blocks_of(type_, tasklets, blocks, elements)}
      %n = upmem.mram {48 << 20} : memref<{counts}x{type_}, $M>
      %wn = upmem.wram : memref<4x{type_}, $W>
      %wc = upmem.wram : {buffer}
      %first = arith.muli %t, %blocks : index
    """ + loop_over_blocks(f"""
        {read("a", "at", total, elements, type_)}
        %kept = scf.for %i = %c0 to %block step %c1 iter_args(%j = %{first}) -> ({number}) {{
          {load("x", "wa", "i", elements, type_)}
          %low = arith.andi %x, %one : {type_}
          %even = arith.cmpi eq, %low, %zero : {type_}
          %next = scf.if %even -> ({number}) {{
            {place}
            memref.store %x, %wc[%{index}] : {buffer}
            %more = arith.addi %j, %{step} : {number}
            scf.yield %more : {number}
          }} else {{
            scf.yield %j : {number}
          }}
          scf.yield %next : {number}
        }}
        upmem.mram_write %wc[%c0] to %c[%at] count %block
          : {buffer}, memref<{total}x{type_}, $M>
        {cast}
        memref.store %{count}, %wn[%c0] : memref<4x{type_}, $W>
        %place = arith.addi %first, %k : index
        %slot = arith.muli %place, %c4 : index
        upmem.mram_write %wn[%c0] to %n[%slot] count %c4
          : memref<4x{type_}, $W>, memref<{counts}x{type_}, $M>
    """)
    return streaming(body, tasklets, blocks, elements)


def hst(type_: str, tasklets: int, blocks: int, elements: int) -> MicroKernel:
    """A histogram of 256 bins for each tasklet; the number of bins is known at run time only."""
    narrow = type_ == "i16"
    wide = "i32" if narrow else type_
    promotion = "%y = arith.extui %x : i16 to i32" if narrow else ""
    factor = "y" if narrow else "x"
    total, bins = tasklets * blocks * elements, f"memref<256x{type_}, $W>"
    part = min(256, 2048 // (int(type_[1:]) // 8))
    writes = "\n".join(
        f"""
        %p{first} = arith.constant {first} : index
        %o{first} = arith.addi %o, %p{first} : index
        upmem.mram_write %h[%p{first}] to %r[%o{first}] count %part
          : {bins}, memref<{256 * tasklets}x{type_}, $M>"""
        for first in range(0, 256, part)
    )
    body = (
        f"""
      {blocks_of(type_, tasklets, blocks, elements)}
      %r = upmem.mram {48 << 20} : memref<{256 * tasklets}x{type_}, $M>
      %h = upmem.wram : {bins}
      %wn = upmem.wram : memref<4x{type_}, $W>
      %part = arith.constant {part} : index
      %shift = arith.constant 12 : {wide}
      %times = arith.index_cast %bins : index to {wide}
      scf.for %i = %c0 to %bins step %c1 {{
        memref.store %zero, %h[%i] : {bins}
      }}
    """
        + loop_over_blocks(f"""
        {read("a", "at", total, elements, type_)}
        scf.for %i = %c0 to %block step %c1 {{
          {load("x", "wa", "i", elements, type_)}
          {promotion}
          %v = arith.muli %{factor}, %times : {wide}
          %bin = arith.shrui %v, %shift : {wide}
          %j = arith.index_cast %bin : {wide} to index
          {load("old", "h", "j", 256, type_)}
          %new = arith.addi %old, %one : {type_}
          memref.store %new, %h[%j] : {bins}
        }}
    """)
        + f"""
      %o = arith.muli %t, %bins : index
      {writes}
    """
    )
    return streaming(body, tasklets, blocks, elements, bins=256)


def gemv(type_: str, tasklets: int, rows: int, k: int, elements: int) -> MicroKernel:
    """Each tasklet multiplies its rows with a vector, which it reads again for each row."""
    total, flush = tasklets * rows * k, min(rows, elements)
    results = f"memref<{tasklets * rows}x{type_}, $M>"
    left = "flush"
    rest = ""
    if rows % flush:
        rest = "%more = arith.subi %rows, %f : index\n%left = arith.minsi %more, %flush : index"
        left = "left"
    body = f"""
      {prologue({"c0": 0, "c1": 1}, type_)}
      {mram("a", A, total, type_)}
      {mram("b", B, k, type_)}
      {mram("c", C, tasklets * rows, type_)}
      %wa = upmem.wram : memref<{elements}x{type_}, $W>
      %wb = upmem.wram : memref<{elements}x{type_}, $W>
      %wc = upmem.wram : memref<{flush}x{type_}, $W>
      %start = arith.muli %t, %rows : index
      scf.for %f = %c0 to %rows step %flush {{
        %base = arith.addi %start, %f : index
        {rest}
        scf.for %r = %c0 to %{left} step %c1 {{
          %row = arith.addi %base, %r : index
          %first = arith.muli %row, %k : index
          %dot, %end = scf.for %i = %c0 to %k step %block
            iter_args(%acc = %zero, %at = %first) -> ({type_}, index) {{
            {read("a", "at", total, elements, type_)}
            {read("b", "i", k, elements, type_)}
            %part = scf.for %j = %c0 to %block step %c1 iter_args(%p = %acc) -> ({type_}) {{
              {load("x", "wa", "j", elements, type_)}
              {load("y", "wb", "j", elements, type_)}
              %m = arith.muli %x, %y : {type_}
              %q = arith.addi %p, %m : {type_}
              scf.yield %q : {type_}
            }}
            %after = arith.addi %at, %block : index
            scf.yield %part, %after : {type_}, index
          }}
          memref.store %dot, %wc[%r] : memref<{flush}x{type_}, $W>
        }}
        upmem.mram_write %wc[%c0] to %c[%base] count %{left}
          : memref<{flush}x{type_}, $W>, {results}
      }}
    """
    sizes = {"rows": rows, "k": k, "block": elements, "flush": flush}
    return MicroKernel(tasklets, sizes, body)


def gemm(type_: str, tasklets: int, rows: int, k: int, n: int, elements: int) -> MicroKernel:
    """Tiles of a row of c; b is transposed; the sum of a column is stored at every step."""
    total, out = tasklets * rows * k, tasklets * rows * n
    tile = f"memref<{elements}x{type_}, $W>"
    body = f"""
      {prologue({"c0": 0, "c1": 1}, type_)}
      {mram("a", A, total, type_)}
      {mram("b", B, k * n, type_)}
      {mram("c", C, out, type_)}
      %wa = upmem.wram : {tile}
      %wb = upmem.wram : {tile}
      %wc = upmem.wram : {tile}
      %start = arith.muli %t, %rows : index
      scf.for %r = %c0 to %rows step %c1 {{
        %row = arith.addi %start, %r : index
        %first = arith.muli %row, %k : index
        %out = arith.muli %row, %n : index
        scf.for %c0n = %c0 to %n step %block {{
          scf.for %j = %c0 to %block step %c1 {{
            memref.store %zero, %wc[%j] : {tile}
          }}
          %top = arith.muli %c0n, %k : index
          %end = scf.for %i = %c0 to %k step %block iter_args(%at = %first) -> (index) {{
            %begin = arith.addi %top, %i : index
            {read("a", "at", total, elements, type_)}
            %last = scf.for %col = %c0 to %block step %c1 iter_args(%bat = %begin) -> (index) {{
              {read("b", "bat", k * n, elements, type_)}
              {load("old", "wc", "col", elements, type_)}
              %sum = scf.for %j = %c0 to %block step %c1 iter_args(%p = %old) -> ({type_}) {{
                {load("x", "wa", "j", elements, type_)}
                {load("y", "wb", "j", elements, type_)}
                %m = arith.muli %x, %y : {type_}
                %q = arith.addi %p, %m : {type_}
                memref.store %q, %wc[%col] : {tile}
                scf.yield %q : {type_}
              }}
              %next = arith.addi %bat, %k : index
              scf.yield %next : index
            }}
            %after = arith.addi %at, %block : index
            scf.yield %after : index
          }}
          %o = arith.addi %out, %c0n : index
          upmem.mram_write %wc[%c0] to %c[%o] count %block
            : {tile}, memref<{out}x{type_}, $M>
        }}
      }}
    """
    return MicroKernel(tasklets, {"rows": rows, "k": k, "n": n, "block": elements}, body)
