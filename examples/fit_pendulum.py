"""Fit three unknown parameters of a wheeled pendulum to a recorded run.

Mass, height of the mass centre and inertia of the pole are not known. The pendulum balances while
it is asked for other speeds; pitch, pitch rate and speed are recorded with noise. The cost is the
mean squared distance of a run to the recording, in units of the noise. Its gradient leads to the
parameters, and sensitivities of the fitted run tell how well the recording determines them.

    python examples/fit_pendulum.py --plots out
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import axode as ax

TRUE = {"mass": 8.0, "height": 0.4, "inertia": 0.4}
GUESS = {"mass": 6.0, "height": 0.3, "inertia": 0.6}
NOISE = {"pitch": 0.003, "pitch_rate": 0.02, "surge": 0.01}  # [rad, rad/s, m/s]
SECONDS, PERIOD = 4.0, 0.02


def pendulum() -> ax.Mechanism:
    """A pole on two driven wheels, its parameters as guessed."""
    mass, height, inertia = (ax.Parameter(name, value) for name, value in GUESS.items())
    bot = ax.Mechanism("pendulum")
    pole = bot.add_body(
        "pole", mass=mass, com=(0, 0, height), inertia=(inertia + 0.05, inertia, 0.1)
    )
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=pole)
    for side, y in (("left", 0.2), ("right", -0.2)):
        bot.add_wheel(side, ax.Rolling(0.1), on=pole, at=(0, y, 0), mass=0.5, motor=True)
    return bot


def drive(s):
    """Balance, and follow a speed that swings."""
    wanted = 0.5 * np.sin(2.0 * s.t) + 0.3 * np.sin(5.0 * s.t)
    torque = 40 * s["pitch"] + 4 * s["pitch_rate"] + 4 * (s["surge"] - wanted)
    return {"left.torque": torque, "right.torque": torque}


GIVEN = {"start": {"pitch": 0.1}, "input": drive, "method": "rk4", "step": 4e-3}


def record(model: ax.Model) -> ax.Trajectory:
    """Run the true pendulum, and add noise to what is measured."""
    draw = np.random.default_rng(1)
    run = ax.simulate(model, SECONDS, save_every=PERIOD, parameters=TRUE, **GIVEN)
    measured = run[list(NOISE)]
    noise = draw.normal(size=measured.values.shape) * list(NOISE.values())
    return measured.changed(values=measured.values + noise)


def fit(cost: ax.Cost) -> tuple[dict[str, float], list[float]]:
    """Find the parameters nearest to the recording, and the cost on the way."""
    names, scale = list(GUESS), np.array(list(GUESS.values()))
    history: list[float] = []

    def distance(x: np.ndarray) -> tuple[float, np.ndarray]:
        found = ax.gradient(cost, dict(zip(names, x * scale, strict=True)))
        return float(found.value), np.array([found[name] for name in names]) * scale

    best = minimize(
        distance,
        np.ones(3),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.3, 3.0)] * len(names),
        callback=lambda x: history.append(distance(x)[0]),
    )
    history.insert(0, distance(np.ones(3))[0])
    return dict(zip(names, (best.x * scale).tolist(), strict=True)), history


def uncertainty(model: ax.Model, found: dict[str, float]) -> dict[str, float]:
    """Standard deviations of the parameters, from the sensitivities of what was measured."""
    run = ax.simulate(
        model, SECONDS, save_every=PERIOD, parameters=found, sensitivities=list(found), **GIVEN
    )
    J = np.array(
        [
            np.concatenate([run.sensitivity(signal, name) / NOISE[signal] for signal in NOISE])
            for name in found
        ]
    )
    return dict(zip(found, np.sqrt(np.diag(np.linalg.inv(J @ J.T))).tolist(), strict=True))


def draw(
    model: ax.Model,
    recorded: ax.Trajectory,
    found: dict[str, float],
    history: list[float],
    path: Path,
) -> None:
    """The recording, the first guess and the fitted run, and the cost on the way."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
    runs = {
        name: ax.simulate(model, SECONDS, save_every=PERIOD, parameters=p, **GIVEN)
        for name, p in (("first guess", GUESS), ("fitted", found))
    }
    for axis, name in zip(axes, ("pitch", "surge"), strict=False):
        axis.plot(recorded.time, recorded[name], ".", color="0.6", markersize=3, label="recorded")
        for (label, run), colour in zip(runs.items(), ("tab:orange", "tab:blue"), strict=True):
            axis.plot(run.time, run[name], color=colour, linewidth=1.2, label=label)
        axis.set(xlabel="time [s]", ylabel=f"{name} [{recorded.unit(name)}]")
    axes[0].legend(frameon=False, fontsize=8)
    axes[2].plot(history, marker="o", markersize=3, color="tab:blue")
    axes[2].set(xlabel="iteration", ylabel="mean squared distance", yscale="log")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plots", type=Path, help="folder for pictures")
    options, _ = parser.parse_known_args()
    model = pendulum().derive().compile()
    recorded = record(model)
    cost = ax.Cost(model, SECONDS, match=recorded, scales=NOISE, **GIVEN)
    found, history = fit(cost)
    error = uncertainty(model, found)
    print(f"{len(history) - 1} iterations from a distance of {history[0]:.1f} to {history[-1]:.2f}")
    for name, value in found.items():
        print(f"{name:8} {value:.3f} +- {error[name]:.3f}, true {TRUE[name]}")
    if options.plots:
        options.plots.mkdir(parents=True, exist_ok=True)
        draw(model, recorded, found, history, options.plots / "fit-pendulum.png")


if __name__ == "__main__":
    main()
