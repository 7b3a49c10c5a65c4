"""Reads MLIR text into a verified module, with places on operations and errors.

For the tools that run programs; `cim-opt` has its own way through xDSL's driver.
"""

import sys
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.universe import Universe
from xdsl.utils.exceptions import VerifyException

from cim_opt.errors import UserError
from cim_opt.tools.located_parser import LocatedParser
from cim_opt.tools.located_verify import located_failure, verify_order


def full_context() -> Context:
    """A context that knows every dialect of the environment, each loaded when it is first met."""
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    return context


def source_name(path: str) -> str:
    """What a file is called in errors."""
    return "<stdin>" if path == "-" else path


def load_module(path: str) -> ModuleOp:
    """The verified module of a file, `-` for stdin.

    Raises UserError when the file cannot be read, and xDSL's ParseError or a
    LocatedVerifyException, both with a place, when its text is wrong.
    """
    return parse_text(_read(path), source_name(path))


def parse_text(text: str, name: str) -> ModuleOp:
    """The verified module of `text`; `name` stands for it in errors. Raises as `load_module`."""
    module = LocatedParser(full_context(), text, name).parse_module()
    try:
        module.verify()
    except VerifyException as error:
        raise located_failure(error, module) from error
    verify_order(module)
    return module


def _read(path: str) -> str:
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}", error.strerror, "check the path") from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path} is not MLIR text", f"byte {error.start} is not UTF-8", "check the file"
        ) from error


def find_entry(module: ModuleOp, name: str | None) -> FuncOp:
    """The function `name`, or the only public one with a body when `name` is None.

    Raises UserError, with the functions that there are, when that is not one function.
    """
    functions = [op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration]
    if name is not None:
        functions = [op for op in functions if op.sym_name.data == name]
        if functions:
            return functions[0]
        raise UserError(f"no function @{name}", _known(module), "name one with --entry")
    public = [op for op in functions if _is_public(op)]
    if len(public) == 1:
        return public[0]
    if not public:
        raise UserError(
            "no function to run",
            "the entry is a public func.func with a body",
            "add one, or name a private one with --entry",
        )
    raise UserError(
        f"{len(public)} functions could be the entry", _known(module), "choose one with --entry"
    )


def _is_public(op: FuncOp) -> bool:
    return op.sym_visibility is None or op.sym_visibility.data == "public"


def _known(module: ModuleOp) -> str:
    names = [
        f"@{op.sym_name.data}"
        for op in module.ops
        if isinstance(op, FuncOp) and not op.is_declaration
    ]
    return f"the file has {', '.join(names)}" if names else "the file has no function with a body"
