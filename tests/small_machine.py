"""A few small UPMEM machines, so that tests reach rounds, full WRAM and idle DPUs quickly."""

from pathlib import Path

SMALL_MACHINES = {
    # One DPU, three tasklets at most, MRAM of 4 KB: many rounds.
    "tiny": {"dpus": 1, "tasklets_max": 3, "mram_bytes": 4096},
    # Five DPUs, 16 KB of WRAM: small blocks.
    "narrow": {"dpus": 5, "tasklets_max": 12, "wram_bytes": 16384, "mram_bytes": 32768},
    # A prime number of DPUs with all the memory.
    "odd": {"dpus": 7},
}


def write_machines(folder: Path) -> dict[str, str]:
    """Writes the machines as TOML files; their paths by name."""
    paths: dict[str, str] = {}
    for name, fields in SMALL_MACHINES.items():
        lines = ['base = "upmem-2560"', f'name = "{name}"']
        lines += [f"{key} = {value}" for key, value in fields.items()]
        path = folder / f"{name}.toml"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        paths[name] = str(path)
    return paths
