"""MLIR in fenced blocks of documentation, made into modules that parse."""

from __future__ import annotations

import re
from textwrap import dedent

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.universe import Universe

_FENCE = re.compile(r"```mlir\n(.*?)```", re.DOTALL)
_BINDING = re.compile(r"(%\w+) (?:in|=) (%\w+) : (tensor<[^>]*>|\w+)")
_DEFINED = re.compile(r"^\s*(%\w+(?:, %\w+)*) = ", re.MULTILINE)


def mlir_blocks(text: str) -> list[str]:
    """The contents of all ```mlir blocks of a docstring or a Markdown page."""
    return [dedent(block).strip() for block in _FENCE.findall(dedent(text))]


def as_function(block: str) -> str:
    """Operations wrapped in a function whose arguments are the operands they do not define."""
    if "func.func" in block:
        return block
    known = {name for names in _DEFINED.findall(block) for name in names.split(", ")}
    known.update(argument for argument, _, _ in _BINDING.findall(block))
    free = {value: attr for _, value, attr in _BINDING.findall(block) if value not in known}
    arguments = ", ".join(f"{value}: {attr}" for value, attr in free.items())
    return f"func.func @example({arguments}) {{\n{block}\nfunc.return\n}}"


def full_context() -> Context:
    """A context with every dialect that is installed."""
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    return context


def parsed(text: str, context: Context | None = None) -> ModuleOp:
    """The module in `text`, verified."""
    module = Parser(context or full_context(), text).parse_module()
    module.verify()
    return module
