"""Steps per second of a live page, its size, and its agreement with Python.

    python -m benchmarks.web_page [--out results.json] [--steps 200000]

Chromium is driven by Playwright, Firefox through its own remote control (Marionette), Node.js loads
the exported module; each is left out where it is not installed. Steps are counted after a warm-up,
without drawing, by the browser's clock; Node.js gives CPU time, which other programs disturb less.
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import axode as ax
from benchmarks.conditions import conditions

NAME, STEP = "wheeled_pendulum", 1e-3
INPUTS = {"M1": 0.1, "M2": 0.05}
WARM_UP, REPEAT = 200_000, 15
PORT = 2828  # on which Firefox listens
COUNT = """
const robot = axode.robot; robot.reset(); robot.set({inputs});
robot.step({step}, {warm_up}); robot.reset(); robot.set({inputs});
const rates = [];
for (let k = 0; k < {repeat}; k++) {{
  const begin = performance.now(); robot.step(1e-6, {steps});
  rates.push({steps} / (performance.now() - begin) * 1000);
}}
rates.sort((a, b) => a - b);
const at = (part) => Math.round(rates[Math.floor(part * ({repeat} - 1))]);
return {{ "steps_per_s": at(0.5), "best": at(1), "least": at(0), "status": robot.status }};
"""
STATE = """
const robot = axode.robot; robot.reset(); robot.set({inputs}); robot.step({step}, 1500);
return {names}.map((name) => robot.get(name));
"""
NODE = """
import {{ load }} from "./robot.js";
const axode = {{ robot: await load() }};
const performance = {{ now: () => process.cpuUsage().user / 1000 }};
const count = () => {{ {count} }}, state = () => {{ {state} }};
console.log(JSON.stringify([count(), state()]));
"""


class Firefox:
    """Firefox without a window, told what to do through Marionette."""

    def __init__(self, program: str, folder: str) -> None:
        command = [program, "--headless", "--no-remote", "--marionette", "--profile", folder]
        nowhere = subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdout=nowhere, stderr=nowhere)
        self.messages = 0
        for _ in range(240):
            with suppress(OSError):
                self.socket = socket.create_connection(("127.0.0.1", PORT), timeout=300)
                break
            time.sleep(0.25)
        self._answer()
        self.ask("WebDriver:NewSession", {})

    def ask(self, command: str, arguments: dict[str, Any]) -> Any:
        """Answer to a command."""
        self.messages += 1
        text = json.dumps([0, self.messages, command, arguments]).encode()
        self.socket.sendall(b"%d:%s" % (len(text), text))
        _, _, error, value = self._answer()
        if error:
            raise RuntimeError(error["message"])
        return value

    def evaluate(self, script: str) -> Any:
        """Value that a script returns in the page."""
        script = script.replace("axode.", "window.wrappedJSObject.axode.")
        arguments = {"script": script, "args": [], "sandbox": "default"}
        return self.ask("WebDriver:ExecuteScript", arguments)["value"]

    def _answer(self) -> Any:
        size = b""
        while not size.endswith(b":"):
            size += self.socket.recv(1)
        text = b""
        while len(text) < int(size[:-1]):
            text += self.socket.recv(int(size[:-1]) - len(text))
        return json.loads(text)

    def close(self) -> None:
        """End the process."""
        self.socket.close()
        self.process.terminate()
        self.process.wait()


def in_chromium(page: Path, scripts: list[str]) -> list[Any] | None:
    """Values of scripts in Chromium; None without it."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        return None
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        opened = browser.new_page()
        opened.goto(page.as_uri())
        opened.wait_for_function("globalThis.axode !== undefined")
        found = [opened.evaluate(f"() => {{ {script} }}") for script in scripts]
        browser.close()
    return found


def in_firefox(page: Path, scripts: list[str]) -> list[Any] | None:
    """Values of scripts in Firefox; None without it."""
    program = shutil.which("firefox") or shutil.which("firefox-esr")
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        browser = Firefox(program, folder)
        try:
            browser.ask("WebDriver:Navigate", {"url": page.as_uri()})
            for _ in range(100):
                if browser.evaluate("return document.body.dataset.time !== undefined"):
                    break
                time.sleep(0.1)
            return [browser.evaluate(script) for script in scripts]
        finally:
            browser.close()


def in_node(model: ax.Model, folder: Path, scripts: list[str]) -> list[Any] | None:
    """Values of scripts in Node.js, by CPU time; None without it."""
    if shutil.which("node") is None:
        return None
    model.export(folder / "robot.wasm")
    program = folder / "run.mjs"
    program.write_text(NODE.format(count=scripts[0], state=scripts[1]), encoding="utf-8")
    done = subprocess.run(["node", str(program)], capture_output=True, text=True, check=True)
    found: list[Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print what was found, and write it where `--out` asks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--steps", type=int, default=200_000)
    given = parser.parse_args()
    model = ax.gallery.build(NAME).derive().compile()
    names = [*model.coordinates, *model.independent]
    run = ax.simulate(model, 1.5, input=INPUTS, method="rk4", step=STEP, progress=False)
    numbers = {"inputs": json.dumps(INPUTS), "names": json.dumps(names), "step": STEP}
    counting = {"warm_up": WARM_UP, "repeat": REPEAT, "steps": given.steps}
    scripts = [text.format(**numbers, **counting) for text in (COUNT, STATE)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        page = ax.page(model, folder / "page.html")
        answers = {
            "chromium": in_chromium(page, scripts),
            "firefox": in_firefox(page, scripts),
            "node, CPU time": in_node(model, folder, scripts),
        }
        module = folder / "robot.wasm"
        sizes = {
            "page_bytes": page.stat().st_size,
            "module_bytes": module.stat().st_size if module.exists() else None,
        }
    found: dict[str, Any] = {"conditions": conditions(), "mechanism": NAME, **sizes}
    for program, answer in answers.items():
        if answer is None:
            found[program] = "not installed"
            continue
        count, state = answer
        apart = [
            abs(a - run.final[name]) / (1 + abs(a)) for a, name in zip(state, names, strict=True)
        ]
        found[program] = {**count, "from_python_after_1500_steps": max(apart)}
    print(json.dumps(found, indent=1))
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
