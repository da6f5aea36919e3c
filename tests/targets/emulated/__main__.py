"""Run exported C and the tests of targets on emulated processors: `make test-emulated`.

Direct and inverse dynamics of every mechanism of the gallery are exported, cross-compiled and run
under QEMU. A processor whose compiler or emulator is missing is skipped. With `--python`, the tests
of machine code run in a Python for aarch64, which `aarch64_python.sh` makes.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

from axode import gallery
from axode.codegen.targets.c import CCode
from axode.errors import AxodeError

HERE = Path(__file__).parent
FUNCTIONS = ("forward_dynamics", "inverse_dynamics")
TIMEOUT = 300  # [s] per function
# Tests that run machine code, that of Apple silicon too.
MACHINE_CODE = (
    *(f"tests/targets/test_{name}.py" for name in ("tape", "compiled", "packing", "many_results")),
    *(f"tests/targets/test_{name}.py" for name in ("columns", "derivatives", "adjoints", "cache")),
    *(f"tests/targets/test_{name}.py" for name in ("reciprocals", "quick_code", "models")),
    "tests/platforms/test_other_processors.py",
)
STRICT = ("-O2", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror")


@dataclass(frozen=True)
class Processor:
    """How C is compiled for a processor, and how the program is run."""

    compiler: tuple[str, ...]
    last: tuple[str, ...]
    emulator: tuple[str, ...]
    packages: str  # of Debian

    @property
    def missing(self) -> list[str]:
        """Tools that are not installed."""
        tools = (self.compiler[0], self.emulator[0])
        return [tool for tool in tools if shutil.which(tool) is None]

    def run(self, code: CCode, folder: Path) -> tuple[bool, str]:
        """Compile a function with its self-test and run it: whether it passed, and its output."""
        files = [str(path) for path in code.write(folder) if path.suffix == ".c"]
        program = folder / code.name
        built = _output([*self.compiler, *files, *self.last, "-o", str(program)])
        if built.returncode:
            return False, built.stdout
        done = _output([*self.emulator, str(program)])
        said = done.stdout.strip()
        return re.match(rf"{code.name}: 0 wrong\b", said) is not None, said


PROCESSORS = {
    "cortex-m4": Processor(
        compiler=(
            *("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb"),
            *("-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", *STRICT),
            "--specs=rdimon.specs",
        ),
        last=(str(HERE / "start.c"), "-T", str(HERE / "cortex_m4.ld"), "-lc", "-lm", "-lrdimon"),
        emulator=(
            *("qemu-system-arm", "-M", "mps2-an386", "-display", "none", "-monitor", "none"),
            *("-serial", "none", "-semihosting-config", "enable=on,target=native", "-kernel"),
        ),
        packages="gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm",
    ),
    "aarch64": Processor(
        compiler=("aarch64-linux-gnu-gcc", *STRICT, "-static"),
        last=("-lm",),
        emulator=("qemu-aarch64",),
        packages="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user",
    ),
}


def _output(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, f"not done after {TIMEOUT} s", "")


def exported(name: str) -> list[CCode]:
    """The functions of a mechanism of the gallery, each with its self-test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = gallery.build(name).derive(self_check=False).compile()
        made = []
        for function in FUNCTIONS:
            try:
                made.append(model.c_code(function, prefix=f"{name}_"))
            except AxodeError as error:
                print(f"  {name}: no {function}: {str(error).splitlines()[0]}")
        return made


def run_machine_code(python: str) -> int:
    """Run the tests of machine code in an emulated Python; the exit code of pytest."""
    root = HERE.parents[2]
    quick = ("-p", "no:cacheprovider", "-q", "-m", "not slow and not gpu")
    return subprocess.run(
        [os.path.abspath(python), "-m", "pytest", *quick, *MACHINE_CODE],
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root / 'src'}", "AXODE_CACHE": "off"},
        check=False,
    ).returncode


def main() -> None:
    """Run the mechanisms that are named, or the whole gallery, on each processor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of mechanisms; the whole gallery unless given")
    parser.add_argument("--processor", action="append", choices=sorted(PROCESSORS))
    parser.add_argument("--python", help="a Python for aarch64, in place of exported C")
    given = parser.parse_args()
    if given.python:
        sys.exit(run_machine_code(given.python))
    ready = {}
    for name in given.processor or PROCESSORS:
        if PROCESSORS[name].missing:
            print(f"{name}: skipped, {' and '.join(PROCESSORS[name].missing)} not found.")
            print(f"  Remedy, on Debian: apt install {PROCESSORS[name].packages}")
        else:
            ready[name] = PROCESSORS[name]
    passed = dict.fromkeys(ready, 0)
    failed = dict.fromkeys(ready, 0)
    for mechanism in given.names or gallery.NAMES if ready else ():
        for code in exported(mechanism):
            for name, processor in ready.items():
                with tempfile.TemporaryDirectory() as folder:
                    sound, output = processor.run(code, Path(folder))
                passed[name] += sound
                failed[name] += not sound
                if not sound:
                    print(f"{name}, {code.name}: {output[-500:]}", flush=True)
    for name in ready:
        print(f"{name}: {passed[name]} passed, {failed[name]} failed")
    sys.exit(1 if any(failed.values()) else 0)


if __name__ == "__main__":
    main()
