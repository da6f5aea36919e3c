"""Tune a balancing law for a thousand robots at once, by the gradient of what they cost on average.

Robots come out of production with other masses, heights, inertias and wheels than the drawing has.
All get the same three gains. Each starts leaning and shall drive at 0.6 m/s; the cost of a robot
is the integral of its lean, of its error of speed and of its torques, squared. One pass backwards
gives the derivative of every robot's cost by the gains.

    python examples/tune_balancer.py --robots 1000 --plots out
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import axode as ax

ROBOTS = 100
SECONDS, STEP = 3.0, 4e-3
SPEED = 0.6  # [m/s] wanted
FIRST = {"kp": 25.0, "kd": 2.0, "kv": 1.0}  # gains that balance, badly


def balancer() -> ax.Mechanism:
    """A pole on two driven wheels."""
    mass, height = ax.Parameter("mass", 8.0), ax.Parameter("height", 0.4)
    inertia, radius = ax.Parameter("inertia", 0.4), ax.Parameter("radius", 0.1)
    bot = ax.Mechanism("balancer")
    pole = bot.add_body(
        "pole", mass=mass, com=(0, 0, height), inertia=(inertia + 0.05, inertia, 0.1)
    )
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=pole)
    for side, y in (("left", 0.2), ("right", -0.2)):
        bot.add_wheel(side, ax.Rolling(radius), on=pole, at=(0, y, 0), mass=0.5, motor=True)
    return bot


def balance(s, kp, kd, kv):
    """Torque of both wheels from lean, its rate, and the speed."""
    torque = kp * s["pitch"] + kd * s["pitch_rate"] + kv * (s["surge"] - SPEED)
    return {"left.torque": torque, "right.torque": torque}


def rate(s):
    """What a second costs."""
    return 10 * s["pitch"] ** 2 + (s["surge"] - SPEED) ** 2 + 1e-3 * s["left.torque"] ** 2


def cost_of(model: ax.Model, robots: int) -> ax.Cost:
    """Cost of robots that differ from the drawing."""
    draw = np.random.default_rng(0)
    return ax.Cost(
        model,
        SECONDS,
        start={"pitch": 0.25},
        input=ax.Law(balance, **FIRST),
        running=rate,
        parameters={
            "mass": draw.normal(8.0, 0.8, robots),
            "height": draw.uniform(0.3, 0.5, robots),
            "inertia": draw.uniform(0.25, 0.55, robots),
            "radius": draw.uniform(0.085, 0.115, robots),
        },
        step=STEP,
    )


def tune(cost: ax.Cost, iterations: int) -> tuple[dict[str, float], list[float]]:
    """Find gains that cost least on average, and the average cost on the way."""
    names, scale = list(FIRST), np.array(list(FIRST.values()))
    history: list[float] = []

    def mean(x: np.ndarray) -> tuple[float, np.ndarray]:
        found = ax.gradient(cost, dict(zip(names, x * scale, strict=True)))
        slope = np.array([found[name].mean() for name in names])
        return float(found.value.mean()), slope * scale

    best = minimize(
        mean,
        np.ones(len(names)),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.2, 30.0)] * len(names),
        callback=lambda x: history.append(mean(x)[0]),
        options={"maxiter": iterations},
    )
    history.insert(0, mean(np.ones(len(names)))[0])
    return dict(zip(names, (best.x * scale).tolist(), strict=True)), history


def draw(cost: ax.Cost, gains: dict[str, float], history: list[float], path: Path) -> None:
    """Lean and speed of some robots before and after, and the cost on the way."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
    for label, colour, chosen in (("before", "tab:orange", FIRST), ("after", "tab:blue", gains)):
        run = ax.simulate(
            cost.model,
            SECONDS,
            start={"pitch": 0.25},
            input=ax.Law(balance, **chosen),
            parameters={name: cost.p[:40, k] for k, name in enumerate(cost.model.parameters)},
        )
        for axis, name, unit in ((axes[0], "pitch", "rad"), (axes[1], "surge", "m/s")):
            axis.plot(run.time, run[name].T, color=colour, alpha=0.25, linewidth=0.8)
            axis.plot([], [], color=colour, label=label)
            axis.set(xlabel="time [s]", ylabel=f"{name} [{unit}]")
    axes[0].legend(frameon=False)
    axes[2].plot(history, marker="o", markersize=3, color="tab:blue")
    axes[2].set(xlabel="iteration", ylabel="mean cost", ylim=(0.0, None))
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--robots", type=int, default=ROBOTS)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--plots", type=Path, help="folder for pictures")
    options, _ = parser.parse_known_args()
    cost = cost_of(balancer().derive().compile(), options.robots)
    began = time.perf_counter()
    gains, history = tune(cost, options.iterations)
    seconds = time.perf_counter() - began
    values = cost.value(gains)
    print(f"{options.robots} robots, {len(history) - 1} iterations in {seconds:.1f} s")
    print(f"mean cost from {history[0]:.3f} to {values.mean():.3f}, worst {values.max():.3f}")
    print("gains: " + ", ".join(f"{name} = {value:.1f}" for name, value in gains.items()))
    if options.plots:
        options.plots.mkdir(parents=True, exist_ok=True)
        draw(cost, gains, history, options.plots / "tune-balancer.png")


if __name__ == "__main__":
    main()
