"""The bit steps that are synthesised by name, and the cache of what was found.

`data/bit_steps.json` holds a shortest program of each; `cim-synth --regenerate` writes it anew.
"""

import json
from importlib.resources import files
from typing import Any

from cim_opt.errors import UserError
from cim_opt.microprograms.synthesis import Synthesis
from cim_opt.microprograms.synthesis_step import Step

BOTH = ("T3", "DCC1")

_AND = Step("and", inputs=("a", "b"), results=(("out", "a & b"),))
_DIFFERENCE = "a ^ b ^ borrow"
_BORROW = "maj(~a, b, borrow)"

_ALL = (
    _AND,
    Step("or", inputs=("a", "b"), results=(("out", "a | b"),)),
    Step("not", inputs=("a",), results=(("out", "~a"),)),
    Step("xor", inputs=("a", "b"), results=(("out", "a ^ b"),)),
    Step(
        "and_pair",
        inputs=("a0", "b0", "a1", "b1"),
        results=(("out0", "a0 & b0"), ("out1", "a1 & b1")),
    ),
    Step(
        "mask_pair",
        inputs=("a0", "a1", "mask"),
        results=(("out0", "a0 & mask"), ("out1", "a1 & mask")),
    ),
    Step(
        "select",
        inputs=("choice", "a", "b"),
        results=(("out", "choice & a | ~choice & b"),),
    ),
    Step(
        "subtract",
        inputs=("a", "b"),
        state=(("borrow", BOTH),),
        results=(("out", _DIFFERENCE),),
        following=(("borrow", _BORROW),),
    ),
    Step(
        "add",
        inputs=("a", "b"),
        state=(("carry", ("DCC1",)),),
        results=(("out", "a ^ b ^ carry"),),
        following=(("carry", "maj(a, b, carry)"),),
    ),
    Step(
        "greater",
        inputs=("a", "b"),
        state=(("greater", ("T2",)),),
        following=(("greater", "maj(a, ~b, greater)"),),
    ),
    Step(
        "deduct_product",
        inputs=("total", "x", "y"),
        state=(("borrow", BOTH),),
        results=(("total", "total ^ (x & y) ^ borrow"),),
        following=(("borrow", "maj(~total, x & y, borrow)"),),
    ),
)
STEPS = {step.name: step for step in _ALL}


def named_step(name: str) -> Step:
    """A step by name; raises UserError where there is none."""
    if name not in STEPS:
        raise UserError(f"no step '{name}'", None, f"the steps are {', '.join(STEPS)}")
    return STEPS[name]


def as_json(found: Synthesis) -> dict[str, Any]:
    """What the cache keeps of one step."""
    step = found.step
    return {
        "inputs": list(step.inputs),
        "state": {name: list(places) for name, places in step.state},
        "results": dict(step.results),
        "following": dict(step.following),
        "majorities": found.majorities,
        "visited": found.visited,
        "commands": [str(command) for command in found.commands],
    }


def cached() -> dict[str, dict[str, Any]]:
    """What `data/bit_steps.json` holds, by name of the step."""
    text = files("cim_opt.microprograms").joinpath("data", "bit_steps.json").read_text()
    return json.loads(text)["steps"]
