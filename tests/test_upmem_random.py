"""Random kernels: the simulator against an oracle that runs one tasklet after another."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from upmem_oracle import Oracle, RandomKernel
from upmem_programs import module_of, small_machine

from cim_opt.dialects import upmem
from cim_opt.simulators.elementwise import quiet
from cim_opt.simulators.upmem_kernel import compile_kernel
from cim_opt.simulators.upmem_mram import Mram
from cim_opt.simulators.upmem_run import KernelRun
from cim_opt.simulators.upmem_selection import select

OUTPUT = 1048576


def check(seed: int, dpus: int, tasklets: int) -> None:
    """One random kernel: the same memory afterwards, and the same instructions on every lane."""
    text = RandomKernel(seed, tasklets).text()
    module = module_of(f"upmem.kernel @k tasklets {tasklets} () {{\n{text}\nupmem.return\n}}")
    kernel = next(op for op in module.ops if isinstance(op, upmem.KernelOp))
    machine = small_machine(dpus)
    rng = np.random.default_rng(seed)
    size = 16 * tasklets
    given_ = rng.integers(-8, 2 ** rng.integers(2, 31), dpus * size).astype(np.int32)

    mram = Mram(dpus, machine.mram_bytes)
    mram.push(given_, 0, size, size, 0)
    run = KernelRun(machine, mram, tasklets)
    with quiet():
        compile_kernel(kernel, machine).function(run)
    counts = run.finish()
    got = np.zeros(dpus * (size + 8), np.int32)
    mram.pull(OUTPUT, size + 8, got, 0)

    memories = [np.full(OUTPUT + 4 * (size + 8), 0xA5, np.uint8) for _ in range(dpus)]
    for dpu, memory in enumerate(memories):
        memory[: 4 * size].view(np.int32)[:] = given_[dpu * size : (dpu + 1) * size]
    oracle = Oracle(kernel, select(kernel, machine), memories)
    oracle.run()
    expected = np.concatenate([memory[OUTPUT:].view(np.int32) for memory in memories])
    assert (got == expected).all(), text
    assert (counts.instructions == oracle.instructions).all(), text


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(1, 5))
def test_random_kernels(seed: int, dpus: int, tasklets: int) -> None:
    check(seed, dpus, tasklets)
