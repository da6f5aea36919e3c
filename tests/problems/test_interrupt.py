"""Ctrl-C keeps what was computed; a progress bar shows only in front of somebody who waits."""

import asyncio
import io
import os
import signal
import subprocess
import sys
import threading
import time

import casadi
import numpy as np
import pytest

import axode as ax
from axode.problems import progress
from axode.problems.runs import batch, session
from axode.problems.simulate import scenario
from axode.problems.sweep import chunk
from tests.problems import machines

LONG = {"method": "rk4", "step": 1e-6, "save_every": 5e-3}  # [s]
RETURN = {"on_interrupt": "return"}
SOON = 1.0  # [s] after Ctrl-C; slices take a tenth of it, other programs the rest


@pytest.fixture(autouse=True)
def listening():
    """Signals are heard, also where whoever started the tests has them ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_after(seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


@pytest.mark.parametrize("runs", [1, 64])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_real_signal(runs: int, threads: int):
    """Consistent samples up to where it was, within a moment, also while threads compute."""
    model = machines.wheeled_pendulum()
    start = {"pitch": np.linspace(0.1, 1.0, runs) if runs > 1 else 0.5}
    ax.simulate(model, 5e-3, start=start, **LONG, threads=threads)  # compiled before the clock runs
    press_after(0.5)
    started = time.perf_counter()
    with pytest.raises(ax.Interrupted) as caught:
        ax.simulate(model, 100.0, start=start, **LONG, threads=threads)
    assert time.perf_counter() - started < 0.5 + SOON
    run = caught.value.result
    assert isinstance(caught.value, KeyboardInterrupt) and isinstance(run, ax.Trajectory)
    assert set(run.statuses) == {"interrupted"} and 0 < run.time[-1] < 100.0
    assert np.nanmax(np.abs(run["error"])) < 1e-9
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_press_while_nothing_runs_is_not_swallowed():
    with pytest.raises(KeyboardInterrupt):  # noqa: SIM117
        with progress.Interrupt() as held:
            os.kill(os.getpid(), signal.SIGINT)
            held.check()


def test_a_second_press_does_not_wait():
    with pytest.raises(KeyboardInterrupt), progress.Interrupt():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)


def test_in_a_running_loop():
    """The handler of asyncio cancels a task, which acts only once the run has ended."""
    model = machines.wheeled_pendulum()
    ax.simulate(model, 5e-3, start={"pitch": 0.5}, **LONG)

    async def run():
        before = signal.getsignal(signal.SIGINT)
        press_after(0.3)
        with pytest.raises(ax.Interrupted) as caught:
            ax.simulate(model, 100.0, start={"pitch": 0.5}, **LONG)
        assert signal.getsignal(signal.SIGINT) is before
        return caught.value.result

    started = time.perf_counter()
    assert 0 < asyncio.run(run()).time[-1] < 100.0
    assert time.perf_counter() - started < 0.3 + SOON


def test_elsewhere_than_in_the_main_thread():
    found: list[ax.Trajectory] = []
    worker = threading.Thread(
        target=lambda: found.append(ax.simulate(machines.slider(), 1.0, start={"rail.rate": 1.0}))
    )
    worker.start()
    worker.join()
    assert found[0].final["rail"] == pytest.approx(1.0)


@pytest.mark.parametrize("options", [{"method": "rk4", "step": 0.01}, {}])
def test_from_a_callback(options: dict):
    """Inside the user's function Ctrl-C acts at once; what came before is kept."""

    def pressed(t: float, state: dict[str, float]) -> list[float]:
        if t > 0.5:
            raise KeyboardInterrupt
        return [1.0]

    run = ax.simulate(machines.slider(), 1.0, input=ax.Callback(pressed), **options, **RETURN)
    assert run.status == "interrupted" and 0.5 <= run.time[-1] < 0.52
    assert run["rail"] == pytest.approx(run.time**2 / 2, abs=1e-9)


def test_while_it_looks_at_the_clock(monkeypatch: pytest.MonkeyPatch):
    """The state where it stopped is the last row, between samples too."""
    monkeypatch.setattr(progress.Progress, "update", _interrupting)
    options = {"method": "rk4", "step": 0.3, "save_every": 30.0}
    run = ax.simulate(machines.slider(), 1e6, start={"rail.rate": 1.0}, **options, **RETURN)
    assert run.status == "interrupted" and 30 < run.time[-1] < 1e6
    assert run["rail"] == pytest.approx(run.time, rel=1e-9)


def _interrupting(self: progress.Progress, share: float, label: str | None = None) -> None:
    assert 0 < share < 1
    raise KeyboardInterrupt


def test_a_program_that_is_interrupted():
    """As a user does it: a script, and a signal from outside."""
    script = """
import axode as ax
bot = ax.Mechanism("cart")
cart = bot.add_body("cart", mass=1.0, inertia=ax.Inertia.point())
bot.add_joint("rail", ax.Prismatic("x"), parent=bot.ground, child=cart)
model = bot.derive().compile()
ax.simulate(model, 1.0, method="rk4", step=0.1)
print("go", flush=True)
options = dict(method="rk4", step=1e-3, save_every=1e6)
try:
    ax.simulate(model, 1e9, start={"rail.rate": 1.0}, **options)
except KeyboardInterrupt as error:
    run = error.result
print(run.status, abs(run.final["rail"] - run.time[-1]) < 1e-6 * run.time[-1], len(run) >= 2)
"""
    script = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n" + script
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", script], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None and child.stdout.readline() == "go\n"
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=20)[0].strip() == "interrupted True True"
        assert child.returncode == 0
    finally:
        child.kill()  # one that did not hear must not run on


def test_a_press_during_the_last_slice_is_not_lost(monkeypatch: pytest.MonkeyPatch):
    """A script that calls `simulate` in a loop can be stopped; the whole run is in the error."""
    before = progress.Progress.update
    monkeypatch.setattr(progress.Progress, "update", _pressing)
    with pytest.raises(
        ax.Interrupted, match=r"what was computed is in the error's \.result"
    ) as caught:
        ax.simulate(machines.slider(), 0.1, start={"rail.rate": 1.0})
    assert caught.value.result.status == "finished"
    monkeypatch.setattr(progress.Progress, "update", before)
    assert ax.simulate(machines.slider(), 0.1).status == "finished"


def _pressing(self: progress.Progress, share: float, label: str | None = None) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def press_while(monkeypatch: pytest.MonkeyPatch, module, name: str, presses: int = 1) -> None:
    """Press Ctrl-C before a function of a module begins."""
    function = getattr(module, name)

    def pressed(*arguments, **options):
        for _ in range(presses):
            os.kill(os.getpid(), signal.SIGINT)
        return function(*arguments, **options)

    monkeypatch.setattr(module, name, pressed)


@pytest.mark.parametrize("phase", [(scenario, "find_starts"), (batch, "rollout_of")])
@pytest.mark.parametrize("angle", [0.3, np.array([0.1, 0.2])])
def test_a_press_before_the_first_step(monkeypatch: pytest.MonkeyPatch, phase, angle):
    """Starts that are being assembled are the result; the steps are not compiled."""
    model, options = machines.four_bar(), {"start": {"crank": angle}, "method": "rk4", "step": 0.1}
    whole = ax.simulate(model, 0.1, **options)
    press_while(monkeypatch, *phase)
    with pytest.raises(ax.Interrupted) as caught:
        ax.simulate(model, 0.1, **options, threads=1)  # starts of the same call are known
    for run in (caught.value.result, ax.simulate(model, 0.1, **options, **RETURN, threads=2)):
        assert set(run.statuses) == {"interrupted"} and run.time.tolist() == [0.0]
        assert np.array_equal(run["rocker"][..., 0], whole["rocker"][..., 0])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("answer", [{}, RETURN])
def test_a_press_that_does_not_wait_for_the_starts(monkeypatch: pytest.MonkeyPatch, answer):
    press_while(monkeypatch, scenario, "find_starts", presses=2)
    with pytest.raises(ax.Interrupted, match="before there was a result") as caught:
        # starts of the same call are known
        ax.simulate(machines.slider(), 1.0, atol=2e-11 + 1e-11 * len(answer), **answer)
    assert caught.value.result is None


@pytest.mark.parametrize("presses", [1, 2])
def test_a_press_while_starts_of_a_sweep_are_assembled(monkeypatch: pytest.MonkeyPatch, presses):
    press_while(monkeypatch, chunk, "find_starts", presses)
    with pytest.raises(ax.Interrupted) as caught:
        ax.sweep(machines.slider(), 1.0, start={"rail": [1.0, 2.0, 3.0]})
    made = caught.value.result
    assert made.statuses == {"interrupted": 3} and np.isnan(made["rail"]).all()


def press_in_casadi(monkeypatch: pytest.MonkeyPatch, call: int) -> list:
    """Press Ctrl-C while CasADi asks a matrix for its size, and ignores what that raises."""
    size, asked = casadi.SX.shape.fget, []

    def shape(matrix):
        asked.append(matrix)
        if len(asked) == call:
            os.kill(os.getpid(), signal.SIGINT)
        return size(matrix)

    monkeypatch.setattr(casadi.SX, "shape", property(shape))
    return asked


def test_casadi_does_not_swallow_a_press(monkeypatch: pytest.MonkeyPatch):
    """It is raised long before the equations are derived, unless the machine is too busy."""
    every = press_in_casadi(monkeypatch, 0)
    ax.gallery.build("planar_3rrr").derive()
    asked = []
    for _ in range(3):
        monkeypatch.undo()
        asked.append(press_in_casadi(monkeypatch, 100))
        with pytest.raises(KeyboardInterrupt):
            ax.gallery.build("planar_3rrr").derive()
    assert 100 <= min(map(len, asked)) < len(every)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("call", range(1, 60, 7))
def test_a_property_of_equations_is_derived_again(monkeypatch: pytest.MonkeyPatch, call: int):
    """A press leaves nothing half made behind."""
    equations = ax.gallery.build("unicycle").derive()
    press_in_casadi(monkeypatch, call)
    with pytest.raises(KeyboardInterrupt):
        _ = equations.C
    monkeypatch.undo()
    assert str(equations.C) == str(ax.gallery.build("unicycle").derive().C)


def interrupt_after(monkeypatch: pytest.MonkeyPatch, slices: int) -> None:
    """Press Ctrl-C after so many slices of steps, each of a few steps."""
    seen: list[float] = []

    def update(self: progress.Progress, share: float, label: str | None = None) -> None:
        seen.append(share)
        if len(seen) >= slices and label is None:  # not at the end of a chunk
            raise KeyboardInterrupt

    monkeypatch.setattr(progress.Progress, "update", update)
    monkeypatch.setattr(session, "FIRST_SLICE", 1.0)
    monkeypatch.setattr(session, "MAX_BUDGET", 1)


def test_an_interrupted_sweep_keeps_the_runs_that_had_ended(monkeypatch: pytest.MonkeyPatch):
    """Runs that were still on their way are NaN and counted as interrupted.

    The first one ends on the user's choice of rows; the second, which starts where that is nearly
    singular, is computed in a batch of its own after all others.
    """
    angles = np.array([1.0, np.pi - 0.03])
    start = {"crank": angles, "coupler": -angles, "rocker": angles, "crank.rate": [1.0, -9.0]}
    options = {"start": start, "combine": "zip", "step": 1e-3, "outputs": {"at": ("last", "crank")}}
    model = machines.parallelogram()
    whole = ax.sweep(model, 0.02, **options)
    assert whole.finished.all()
    interrupt_after(monkeypatch, 25)
    with pytest.raises(ax.Interrupted) as caught:
        ax.sweep(model, 0.02, **options)
    made = caught.value.result
    assert made.finished.tolist() == [True, False] and np.isnan(made["at"][1])
    assert made["at"][0] == whole["at"][0]
    assert made.statuses == {"finished": 1, "interrupted": 1}
    interrupt_after(monkeypatch, 20)  # the second one waits
    made = ax.sweep(model, 0.02, **options, **RETURN)
    assert made.statuses == {"finished": 1, "interrupted": 1}


@pytest.mark.parametrize("verb", [ax.simulate, ax.sweep])
def test_the_answer_to_an_interrupt_is_checked(verb):
    with pytest.raises(ax.UnknownName, match="raise, return"):
        verb(machines.slider(), 1.0, on_interrupt="ignore")


class Terminal(io.StringIO):
    """Something that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, waited: float, wanted) -> bool:
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.Progress("work", wanted) as bar:
        monkeypatch.setattr(bar, "_started", time.perf_counter() - waited)
        bar.update(0.25)
        return bar._bar is not None


def test_a_bar_only_for_those_who_wait(monkeypatch: pytest.MonkeyPatch):
    long, short = progress.PATIENCE + 0.1, progress.PATIENCE / 2
    assert shown(monkeypatch, Terminal(), long, None)
    assert not shown(monkeypatch, Terminal(), short, None)
    assert not shown(monkeypatch, io.StringIO(), long, None)
    assert not shown(monkeypatch, Terminal(), long, False)
    assert shown(monkeypatch, io.StringIO(), long, True)


def test_short_runs_write_nothing(capfd: pytest.CaptureFixture[str]):
    ax.simulate(machines.slider(), 1.0)
    assert capfd.readouterr() == ("", "")
