"""The public names: present, documented, and free of cost at import."""

import inspect
import subprocess
import sys

import pytest

import axode

LOADED_WHEN_USED = (
    "casadi",
    "llvmlite",
    "pydantic",
    "matplotlib",
    "sympy",
    "viser",
    "cupy",
    "pandas",
    "pyarrow",
    "torch",
    "jax",
)


def own_docstring(value: object) -> str:
    """Docstring written for this very object, not inherited and not made by dataclasses."""
    if inspect.isclass(value):
        text = vars(value).get("__doc__") or ""
        return "" if text.startswith(f"{value.__name__}(") else text
    if inspect.isroutine(value) or inspect.ismodule(value):
        return value.__doc__ or ""
    text = getattr(value, "__doc__", None) or ""
    return "" if text == type(value).__doc__ else text


def loaded_by(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter holds after the statement."""
    code = f"{statement}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    command = [sys.executable, "-P", "-c", code]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_import_is_light():
    heavy = loaded_by("import axode").intersection(LOADED_WHEN_USED)
    assert not heavy, (
        f"`import axode` loads {sorted(heavy)}; import them inside the functions that use them "
        "(`python -X importtime -c 'import axode'` shows who does it)"
    )


def test_a_heavy_import_would_be_seen():
    assert "pydantic" in loaded_by("import pydantic")
    assert "casadi" not in loaded_by("import json")


@pytest.mark.parametrize("name", axode.__all__)
def test_public_name_exists_and_is_documented(name):
    assert hasattr(axode, name), f"axode.__all__ lists {name!r}, and axode has no such name"
    if not name.startswith("__"):
        assert own_docstring(getattr(axode, name)).strip(), f"axode.{name} needs its own docstring"


def test_completion_offers_public_names_alone():
    offered = {name for name in dir(axode) if not name.startswith("_")}
    assert offered == set(axode.__all__)


def test_public_names_are_unique():
    names = [name for name in axode.__all__ if not name.startswith("__")]
    assert names, "axode.__all__ is empty"
    assert len(names) == len(set(names)), "axode.__all__ lists a name twice"


def test_package_is_documented():
    assert (axode.__doc__ or "").strip(), "src/axode/__init__.py needs a docstring"


def test_a_missing_docstring_would_be_seen():
    from dataclasses import dataclass

    class Documented:
        """Yes."""

    class Heir(Documented):
        pass

    @dataclass
    class Generated:
        mass: float

    def bare():
        pass

    assert own_docstring(Documented)
    for value in (Heir, Generated, bare, 3.0, "text", Documented()):
        assert not own_docstring(value)


def test_results_of_public_functions_are_public():
    missing = {}
    for name in axode.__all__:
        value = getattr(axode, name)
        if inspect.isfunction(value):
            kind = str(inspect.signature(value).return_annotation).strip("'\"")
            if kind[:1].isupper() and kind.isidentifier() and kind != "Any":
                missing[name] = kind
    missing = {name: kind for name, kind in missing.items() if kind not in axode.__all__}
    assert not missing, f"export from axode what these return: {missing}"
