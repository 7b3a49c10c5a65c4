"""Lets lit run the same files: `lit tests/filecheck`. Needs no activated virtual environment."""

# lit executes this file with `config` and `lit_config` already defined.
# ruff: noqa: F821
# pyright: basic, reportUndefinedVariable=false

import os
import sys

import lit.formats

config.name = "cim-opt"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
# Not beside the tests, where lit would litter the folders with Output/.
config.test_exec_root = os.path.join(config.test_source_root, "..", "..", "build", "lit")
# lit cleans the environment; the tools are where the Python that runs lit is.
config.environment["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
