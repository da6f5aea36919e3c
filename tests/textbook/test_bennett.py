"""Bennett's linkage: four skew axes that no count of freedoms lets move, and that do.

Opposite links are alike and a / sin(alpha) is the same for all; then the angles follow
tan(theta_1 / 2) tan(theta_2 / 2) = sin((beta + alpha) / 2) / sin((beta - alpha) / 2).
"""

import numpy as np
import pytest

import axode as ax

ALPHA, BETA = np.radians(60.0), np.radians(30.0)
A = 1.0
B = A * np.sin(BETA) / np.sin(ALPHA)
RATIO = np.sin((BETA + ALPHA) / 2) / np.sin((BETA - ALPHA) / 2)


def second_angle(first):
    return 2 * np.arctan(RATIO / np.tan(first / 2))


def linkage(last=B):
    machine = ax.Mechanism("Bennett")
    links = [machine.ground]
    ends = ((A, ALPHA), (B, BETA), (A, ALPHA))
    for k in range(3):
        links.append(
            machine.add_body(f"link{k + 1}", mass=1.0, com=(0.3, 0, 0), inertia=(0.01, 0.1, 0.1))
        )
        at, rotation = ((ends[k - 1][0], 0, 0), (ends[k - 1][1], 0, 0)) if k else ((0, 0, 0),) * 2
        machine.add_joint(
            f"j{k + 1}",
            ax.Revolute("z"),
            parent=links[k],
            child=links[k + 1],
            at=at,
            rotation=rotation,
        )
    machine.add_loop(
        "j4",
        ax.Revolute("z"),
        parent=links[3],
        child=machine.ground,
        at=(A, 0, 0),
        rotation=(ALPHA, 0, 0),
        child_at=(-last, 0, 0),
        child_rotation=(-BETA, 0, 0),
    )
    machine.set_home(j1=1.0, j2=second_angle(1.0), j3=-1.0)
    return machine


def test_the_linkage_moves_and_its_forces_are_undecided():
    mobility = linkage().derive().mobility
    assert (mobility.mobility, mobility.rows, mobility.rank) == (1, 5, 2)
    assert len(mobility.dropped) == 3
    assert set(mobility.indeterminate) == {"j4.rx", "j4.ry", "j4.x", "j4.y", "j4.z"}


def test_angles_follow_the_closed_form():
    model = linkage().derive().compile()
    run = ax.simulate(model, 0.5, start={"j1.rate": 0.5})
    first, second, third = (run[f"j{k}"] for k in (1, 2, 3))
    assert np.ptp(first) > 0.2
    assert np.allclose(np.tan(first / 2) * np.tan(second / 2), RATIO, rtol=1e-9)
    assert np.allclose(third, -first, atol=1e-10)
    assert run.energy_error < 1e-7


@pytest.mark.slow
def test_any_other_length_leaves_it_open_or_rigid():
    with pytest.raises((ax.Immobile, ax.LoopNotClosed)):
        linkage(last=1.05 * B).derive()
