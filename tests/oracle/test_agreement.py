"""Three hundred random mechanisms: every formulation and the oracle agree, or it is refused.

`make soak` does the same for ten thousand.
"""

import pytest

from near_mechanisms import KINDS, SHAPES, mechanism_of
from oracle.agreement import judge
from oracle.soak import RIVALS

COUNTS = {"tree": 66, "loop": 15, "vehicle": 19}  # of each kind: 300 in all
# A refusal is right for a description that does not close or move; most must be taken.
MOST = 0.7


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_formulations_agree_with_the_oracle(kind, shape):
    """Rivals and the system of all bodies in turn, each with every third mechanism."""
    verdicts = []
    for seed in range(COUNTS[shape]):
        rivals = [RIVALS[seed // 3 % len(RIVALS)]] if seed % 3 == 0 else []
        verdicts.append(judge(mechanism_of(kind, shape, seed), rivals, bodies=seed % 3 == 1))
    failed = [f"{verdict.name}: {verdict.failed}" for verdict in verdicts if verdict.failed]
    assert not failed, "\n".join(failed)
    assert sum(not verdict.refused for verdict in verdicts) > MOST * COUNTS[shape]
