"""cim-opt: a compiler and simulators for processing in memory, on xDSL.

The parts of the package are folders at the top of the repository, reached through links
in this folder: `cim_opt.dialects` is `dialects/`, and so on.
"""

import os

if not os.path.isdir(os.path.join(os.path.dirname(__file__), "dialects")):
    raise ImportError(
        "cim_opt was installed from a checkout without symbolic links; "
        "the folders below src/cim_opt must be links; "
        "run: git config core.symlinks true && git checkout -- src, then install again"
    )


def __getattr__(name: str) -> str:
    """`cim_opt.__version__`, read on first use: start-up does not pay for the metadata."""
    if name != "__version__":
        raise AttributeError(f"module 'cim_opt' has no attribute '{name}'")
    from importlib.metadata import version

    return version("cim-opt")
