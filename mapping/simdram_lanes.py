"""What goes side by side in the columns: the inputs of one output, or many outputs.

A stage has `outputs` results, each of `group` inputs, on `columns` columns. Reduction-in-lane puts
the inputs of one output side by side and takes outputs one after the other; output-stationary puts
outputs side by side and takes their inputs one after the other. Source: DaPPA, section 4.3.3.
"""

from typing import Literal

Mapping = Literal["output-stationary", "reduction-in-lane"]


def operations(mapping: Mapping, outputs: int, group: int, columns: int) -> int:
    """How many column-parallel operations a stage takes for each operation of its function."""
    if mapping == "output-stationary":
        return group * -(-outputs // columns)
    return outputs * -(-group // columns)


def choose_mapping(outputs: int, group: int, columns: int) -> Mapping:
    """The mapping with fewer operations; where both fit the columns, by which there are more of."""
    if outputs < columns and group < columns:
        return "output-stationary" if outputs >= group else "reduction-in-lane"
    stationary = operations("output-stationary", outputs, group, columns)
    in_lane = operations("reduction-in-lane", outputs, group, columns)
    return "output-stationary" if stationary <= in_lane else "reduction-in-lane"
