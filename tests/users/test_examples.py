"""Every example runs as it stands."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SAYS = {
    "ackermann": "car: mobility 0",
    "balance": "asked for 0.6 m/s to the left: 0.6000 m/s, heading 1.5708 rad",
    "bennett": "the closed form says -2.73205",
    "bicycle": "5.0  [-14.078",
    "slider_crank": "largest difference",
    "turntable": "circle about (-0.7250, 0) m, radius 1.2250 m",
}


@pytest.mark.parametrize("name", sorted(SAYS))
def test_an_example_says_what_it_promises(name, capsys):
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert SAYS[name] in capsys.readouterr().out
