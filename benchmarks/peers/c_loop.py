"""C sources of a function, compiled by the system's compiler with a loop over samples around them.

Both CasADi's own C and Axode's are timed this way: without Python between the calls, and without
the conversions of `casadi.external`.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import casadi as ca
import numpy as np

from axode.codegen.tape.tape import Tape
from axode.codegen.targets.c import CCode

FLAGS = ("-O3", "-march=native", "-fPIC", "-shared", "-w")
_POINTER = ctypes.c_void_p


class Skipped(Exception):
    """Why there is no C to time."""


class CLoop:
    """A compiled loop: call it, and the samples are done.

    Attributes:
        seconds: What the compiler took.
        size: Bytes of code.
    """

    def __init__(self, source: str, inputs: Sequence[np.ndarray], out: np.ndarray) -> None:
        """Compiles `source`, which must define `void loop(long, inputs..., out)`.

        Raises:
            Skipped: if there is no compiler.
        """
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            raise Skipped("no C compiler found; on Debian: apt install gcc")
        self._folder = tempfile.TemporaryDirectory()
        file, library = (Path(self._folder.name) / name for name in ("loop.c", "loop.so"))
        file.write_text(source)
        start = time.perf_counter()
        subprocess.run([compiler, *FLAGS, str(file), "-o", str(library), "-lm"], check=True)
        self.seconds = time.perf_counter() - start
        self.size = library.stat().st_size
        function = ctypes.CDLL(str(library)).loop
        function.argtypes = [ctypes.c_long, *[_POINTER] * (len(inputs) + 1)]
        self._arrays = (*inputs, out)
        addresses = [array.ctypes.data for array in self._arrays]
        self._call = lambda: function(len(out), *addresses)

    def __call__(self) -> None:
        self._call()


def casadi_c(function: ca.Function) -> str:
    """CasADi's C of a function, and a loop around it."""
    generator = ca.CodeGenerator("function.c")
    generator.add(function)
    inputs = range(function.n_in())
    arguments = ", ".join(f"const double *x{k}" for k in inputs)
    places = " ".join(f"arg[{k}] = x{k} + i * {function.nnz_in(k)};" for k in inputs)
    return f"""{generator.dump()}
void loop(long n, {arguments}, double *y) {{
  const double *arg[{max(1, function.sz_arg())}]; double *res[{max(1, function.sz_res())}];
  static long long iw[{max(1, function.sz_iw())}]; static double w[{max(1, function.sz_w())}];
  for (long i = 0; i < n; ++i) {{
    {places} res[0] = y + i * {function.nnz_out(0)};
    {function.name()}(arg, res, iw, w, 0);
  }}
}}
"""


def axode_c(code: CCode, tape: Tape) -> str:
    """Axode's C of a tape, and a loop around it."""
    arguments = ", ".join(f"const double *x{k}" for k in range(len(tape.inputs)))
    places = ", ".join(f"x{k} + i * {port.size}" for k, port in enumerate(tape.inputs))
    source = code.source.replace(f'#include "{code.name}.h"', code.header)
    return f"""{source}
void loop(long n, {arguments}, double *y) {{
  for (long i = 0; i < n; ++i)
    {code.name}({places}, y + i * {tape.outputs[0].size});
}}
"""
