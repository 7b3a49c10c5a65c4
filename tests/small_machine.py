"""A few small machines, so that tests reach rounds, tiles and full memories quickly."""

from pathlib import Path

SMALL_MACHINES = {
    # One DPU, three tasklets at most, MRAM of 4 KB: many rounds.
    "tiny": {"dpus": 1, "tasklets_max": 3, "mram_bytes": 4096},
    # Five DPUs, 16 KB of WRAM: small blocks.
    "narrow": {"dpus": 5, "tasklets_max": 12, "wram_bytes": 16384, "mram_bytes": 32768},
    # A prime number of DPUs with all the memory.
    "odd": {"dpus": 7},
}

SMALL_SIMDRAM_MACHINES = {
    # Rows of 64 bits: a few tiles for most lengths, one after the other.
    "one-subarray": {"columns": 64, "row_bytes": 8, "subarrays": 1},
    # The same rows, three tiles at once.
    "three-subarrays": {"columns": 64, "row_bytes": 8, "subarrays": 3},
    # Rows for a few objects: others are spilled.
    "few-rows": {"columns": 64, "row_bytes": 8, "subarrays": 3, "data_rows": 800},
}


def write_machines(folder: Path) -> dict[str, str]:
    """Writes all of the machines as TOML files; their paths by name."""
    paths: dict[str, str] = {}
    for base, machines in (("upmem-2560", SMALL_MACHINES), ("simdram-1", SMALL_SIMDRAM_MACHINES)):
        for name, fields in machines.items():
            lines = [f'base = "{base}"', f'name = "{name}"']
            lines += [f"{key} = {value}" for key, value in fields.items()]
            path = folder / f"{name}.toml"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            paths[name] = str(path)
    return paths
