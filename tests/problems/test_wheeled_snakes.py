"""Snakes on wheels move through poses at which hinges no longer determine the next axle's way."""

import numpy as np
import pytest

import axode as ax
import wheeled_chains as chains

ROLLS = 1e-8  # [m/s] across an axle, of speeds of 1 m/s


def sideways(run: ax.Trajectory, links: int, lever: float) -> np.ndarray:
    """Largest velocity of any axle across its link, from coordinates and speeds by hand."""
    velocity = np.array([run["base.surge"], run["base.sway"]])
    turn = np.array(run["base.yaw_rate"])
    found = [velocity[1] - lever * turn]
    for k in range(1, links):
        x, y = -0.5, 0.05 * (k % 3 - 1)  # of the hinge, as `wheeled_chains` places it
        at_hinge = velocity + np.array([-y * turn, x * turn])
        c, s = np.cos(run[f"hinge{k}"]), np.sin(run[f"hinge{k}"])
        velocity = np.array([c * at_hinge[0] + s * at_hinge[1], c * at_hinge[1] - s * at_hinge[0]])
        turn = turn + run[f"hinge{k}.rate"]
        found.append(velocity[1] - lever * turn)
    return np.abs(found).max()


@pytest.fixture(scope="module", params=[(12, 0.0), (12, 0.25)], ids=["under hinges", "behind"])
def snake(request):
    links, lever = request.param
    return links, lever, chains.snake(links, lever=lever).derive().compile()


@pytest.mark.slow
def test_hinges_pass_right_angles(snake):
    links, lever, model = snake
    start = dict(zip(model.independent, (0.6, 0.8), strict=True))
    run = ax.simulate(model, 4.0, start=start, save_every=0.1)
    largest = max(np.abs(run[f"hinge{k}"]).max() for k in range(1, links))
    assert largest > np.pi / 2
    assert run.energy_error < 1e-9
    assert sideways(run, links, lever) < ROLLS


@pytest.mark.slow
def test_rows_of_a_sweep_pass_them_as_runs_do(snake):
    links, _, model = snake
    first, second = model.independent
    turns = np.array([0.5, 0.8, 1.1])
    outputs = {f"hinge{k}": ("last", f"hinge{k}") for k in (1, links - 1)}
    found = ax.sweep(model, 3.0, start={first: 0.6, second: turns}, outputs=outputs)
    for row, turn in enumerate(turns):
        run = ax.simulate(model, 3.0, start={first: 0.6, second: float(turn)})
        for name in outputs:
            np.testing.assert_allclose(found[name][row], run.final[name], rtol=1e-6, atol=1e-7)
