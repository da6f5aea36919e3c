"""A tool that reads FMUs, in a few lines of ctypes: for tests without FMPy."""

from __future__ import annotations

import ctypes
import os
import re
import xml.etree.ElementTree as ET
import zipfile
from ctypes import byref, c_bool, c_char_p, c_double, c_int, c_size_t, c_uint, c_void_p
from pathlib import Path

import numpy as np

LIBC = ctypes.CDLL("ucrtbase" if os.name == "nt" else None)


class Callbacks(ctypes.Structure):
    """What FMI 2 hands to an instance; the logger is left out."""

    _fields_ = [
        ("logger", c_void_p),
        ("allocate", c_void_p),
        ("release", c_void_p),
        ("finished", c_void_p),
        ("environment", c_void_p),
    ]


class Unit:
    """An instance of an FMU, its variables by name.

    Args:
        path: The file; it is extracted beside itself.
        cosimulation: Whether it integrates by itself.
    """

    def __init__(self, path: Path, *, cosimulation: bool = True) -> None:
        folder = path.with_suffix("")
        if not folder.exists():  # a library in use must not be written again
            with zipfile.ZipFile(path) as archive:
                archive.extractall(folder)
        self.root = ET.parse(folder / "modelDescription.xml").getroot()
        self.version = int(self.root.get("fmiVersion", "")[0])
        (library,) = (file for file in (folder / "binaries").rglob("*") if file.is_file())
        self.library = ctypes.CDLL(str(library))
        self.messages: list[str] = []
        self.variables = {v.get("name"): v for v in self.root.find("ModelVariables")}
        self.references = {n: int(v.get("valueReference")) for n, v in self.variables.items()}
        self.instance = c_void_p(self._instantiate(cosimulation))
        assert self.instance.value

    def _instantiate(self, cosimulation: bool):
        token = self.root.get("guid") or self.root.get("instantiationToken")
        if self.version == 2:
            release = ctypes.cast(LIBC.free, c_void_p)
            self._callbacks = Callbacks(None, ctypes.cast(LIBC.calloc, c_void_p), release)
            make = self.library.fmi2Instantiate
            make.restype = c_void_p
            given = (token.encode(), b"", byref(self._callbacks), c_int(0), c_int(0))
            return make(b"unit", c_int(cosimulation), *given)
        kind = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_char_p)
        self._log = kind(lambda _, status, category, text: self.messages.append(text.decode()))
        flags = [c_bool(False)] * 2
        if cosimulation:
            make = self.library.fmi3InstantiateCoSimulation
            rest = (*flags, None, c_size_t(0), None, self._log, None)
        else:
            make, rest = self.library.fmi3InstantiateModelExchange, (None, self._log)
        make.restype = c_void_p
        return make(b"unit", token.encode(), b"", *flags, *rest)

    def call(self, name: str, *arguments) -> int:
        """Call a function of the interface, such as Terminate; gives its status."""
        return getattr(self.library, f"fmi{self.version}{name}")(self.instance, *arguments)

    def start(self, **values: float) -> int:
        """Set start values and initialize."""
        status = self.set(**values)
        if self.version == 2:
            zero = c_double(0.0)
            status |= self.call("SetupExperiment", 0, zero, zero, 0, zero)
            status |= self.call("EnterInitializationMode")
        else:
            zero, no = c_double(0.0), c_bool(False)
            status |= self.call("EnterInitializationMode", no, zero, zero, no, zero)
        return status | self.call("ExitInitializationMode")

    def _many(self, names, values):
        sizes = [c_size_t(len(names))] if self.version == 3 else []
        places = (c_uint * len(names))(*(self.references[name] for name in names))
        return (places, c_size_t(len(names)), values.ctypes.data_as(c_void_p), *sizes)

    def set(self, **values: float) -> int:
        """Set variables by name; gives the status."""
        given = np.array(list(values.values()), dtype=float)
        name = "SetReal" if self.version == 2 else "SetFloat64"
        return self.call(name, *self._many(list(values), given))

    def get(self, *names: str) -> np.ndarray:
        """Values of variables."""
        values = np.full(len(names), np.nan)
        name = "GetReal" if self.version == 2 else "GetFloat64"
        assert self.call(name, *self._many(names, values)) == 0
        return values

    def step(self, t: float, h: float) -> int:
        """Make a communication step; gives the status."""
        if self.version == 2:
            return self.call("DoStep", c_double(t), c_double(h), 0)
        self.flags, last = [c_bool() for _ in range(3)], c_double()
        more = (*map(byref, self.flags), byref(last))
        return self.call("DoStep", c_double(t), c_double(h), c_bool(False), *more)

    def derivative(self, unknowns, knowns, seed) -> np.ndarray:
        """Changes of some variables for changes of others."""
        seed, made = np.array(seed, dtype=float), np.full(len(unknowns), np.nan)
        of, by = self._many(unknowns, made), self._many(knowns, seed)
        arguments = (*of[:2], *by[:2], *by[2:], *of[2:])
        assert self.call("GetDirectionalDerivative", *arguments) == 0
        return made

    def adjoint(self, unknowns, knowns, seed) -> np.ndarray:
        """Gradient of a weighted sum of some variables by others."""
        seed, made = np.array(seed, dtype=float), np.full(len(knowns), np.nan)
        of, by = self._many(unknowns, seed), self._many(knowns, made)
        assert self.call("GetAdjointDerivative", *of[:2], *by[:2], *of[2:], *by[2:]) == 0
        return made


def dependencies(unit: Unit, name: str) -> list[str]:
    """Names of the variables on which an output or a derivative depends."""
    shift = 1 if unit.version == 2 else 0
    place = str(unit.references[name] + shift)
    structure = unit.root.find("ModelStructure")
    assert structure is not None
    for element in structure.iter():
        if place in (element.get("index"), element.get("valueReference")):
            names = {r + shift: n for n, r in unit.references.items()}
            return [names[int(k)] for k in re.findall(r"\d+", element.get("dependencies") or "")]
    raise KeyError(name)
