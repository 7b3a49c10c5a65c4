"""The choice of what lies in the columns, on worked examples."""

import pytest

from cim_opt.mapping.simdram_lanes import Mapping, choose_mapping, operations

W = 65536
STATIONARY: Mapping = "output-stationary"
IN_LANE: Mapping = "reduction-in-lane"


@pytest.mark.parametrize(
    ("outputs", "group", "in_lane", "stationary", "choice"),
    [
        (1, 1_000_000, 16, 1_000_000, IN_LANE),
        (262_144, 100, 262_144, 400, STATIONARY),
        (1000, 1000, 1000, 1000, STATIONARY),
        (999, 1000, 999, 1000, IN_LANE),
        (70_000, 60_000, 70_000, 120_000, IN_LANE),
        (2, 70_000, 4, 70_000, IN_LANE),
        (10**10, 10_000, 10**10, 1_525_880_000, STATIONARY),
    ],
)
def test_worked_examples(
    outputs: int, group: int, in_lane: int, stationary: int, choice: Mapping
) -> None:
    assert operations(IN_LANE, outputs, group, W) == in_lane
    assert operations(STATIONARY, outputs, group, W) == stationary
    assert choose_mapping(outputs, group, W) == choice
