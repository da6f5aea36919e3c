"""`axode ros`: parameters of a robot for ROS 2."""

from __future__ import annotations

from pathlib import Path

import typer

from axode.cli.model_sources import Built
from axode.cli.options import Texts, numbers
from axode.cli.output import check_writable
from axode.disk.atomic import write_atomically


def ros(
    *,
    built: Built,
    speed: float | None = None,
    turn: float | None = None,
    friction: float = 0.6,
    share: float = 0.8,
    parameter: Texts = None,
    out: Path | None = None,
) -> None:
    """Write parameters for ROS 2: the wheel controller, and limits for Nav2.

    axode ros examples/diffdrive.toml

    axode ros examples/diffdrive.toml --speed 0.8 --turn 1.5 --out robot.yaml

    Options:
        speed NUMBER: Largest speed, in m/s; with turn, accelerations that the robot can give at all
            speeds up to these, for the velocity smoother of Nav2.
        turn NUMBER: Largest turn rate, in rad/s.
        friction NUMBER: Coefficient of friction of the wheels.
        share NUMBER: Part of friction, wheel load and motor torque that may be used.
        out FILE: File to write (.yaml); printed by default.
    """
    from axode.ros.controllers import controllers
    from axode.ros.limits import velocity_limits

    check_writable(out, (".yaml", ".yml"))
    if (speed is None) != (turn is None):
        raise typer.BadParameter("give both, or neither", param_hint="--speed, --turn")
    model = built.model()
    text = controllers(model)
    if speed is not None and turn is not None:
        values = numbers("--parameter", parameter) or None
        found = velocity_limits(model, speed, turn, friction, share=share, parameters=values)
        text += "\n" + found.nav2()
    if out is None:
        print(text, end="")
    else:
        write_atomically(out, text.encode("utf-8"))
        print(f"wrote {out}")
