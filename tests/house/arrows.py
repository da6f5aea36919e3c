"""Who imports whom, read from the source without running it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from house.tree import parsed

# The pipeline. A folder may import itself and what stands before it.
ORDER = (
    "errors",
    "names",
    "argument_types",
    "disk",
    "numerics",
    "runtime",
    "mechanism",
    "oracle",
    "symbolic",
    "codegen",
    "printing",
    "model",
    "results",
    "problems",
    "kinematics",
    "motions",
    "cooperation",
    "formats",
    "show",
    "literature",
    "cli",
)

# Files whose methods start a later stage when they are called, never when they are imported.
STEPS_WHEN_CALLED = {
    ("axode.mechanism.mechanism", "symbolic"),  # Mechanism.derive
    ("axode.mechanism.mechanism", "printing"),  # what a notebook shows of it
    ("axode.mechanism.files.loading", "formats"),  # load reads what a file holds
    ("axode.mechanism.export_methods", "formats"),  # Mechanism.to_urdf, to_mjcf and to_sdf
    ("axode.symbolic.equations", "printing"),  # Equations.latex, text and sympy
    ("axode.symbolic.equations", "problems"),  # Equations.derivation assembles its state
    ("axode.symbolic.equations", "model"),  # Equations.compile
    ("axode.model.exports.export", "problems"),  # Model.export writes whole runs too
    ("axode.model.named_arguments", "problems"),  # states given by measures are assembled
    ("axode.problems.inverse.inverse", "motions"),  # inverse takes planned motions
    ("axode.kinematics.postures.postures", "show"),  # Postures.plot
    ("axode.kinematics.velocities.singularity_map", "show"),  # SingularityMap.plot
    ("axode.results.trajectory_exports", "show"),  # Trajectory.plot, report, view and logs
    ("axode.results.sweep_result", "show"),  # Sweep.plot
    ("axode.kinematics.workspaces.workspace_result", "show"),  # Workspace.plot
}

# Packages that a folder knows nothing of, not even inside a function.
FORBIDDEN = {
    "errors": {"numpy", "casadi", "llvmlite"},
    "names": {"numpy", "casadi", "llvmlite"},
    "numerics": {"casadi", "llvmlite"},
    "runtime": {"casadi", "llvmlite"},
    "mechanism": {"casadi", "llvmlite"},
    "oracle": {"casadi", "llvmlite"},
    "symbolic": {"llvmlite"},
    "printing": {"llvmlite"},
    "model": {"llvmlite"},
    "problems": {"llvmlite"},
    "kinematics": {"llvmlite"},
    "motions": {"llvmlite"},
    "cooperation": {"llvmlite"},
    "results": {"casadi", "llvmlite"},
    "formats": {"casadi", "llvmlite"},
    "show": {"casadi", "llvmlite"},
    "cli": {"casadi", "llvmlite"},
    "gallery": {"casadi", "llvmlite"},
}

# Extras and peers, imported when used so that a plain installation starts.
WHEN_USED = {
    "matplotlib",
    "viser",
    "av",
    "PIL",
    "control",
    "cupy",
    "pandas",
    "pyarrow",
    "sympy",
    "xarray",
    "mcap",
    "rerun",
    "pinocchio",
    "mujoco",
    "torch",
    "jax",
}


@dataclass(frozen=True)
class Import:
    """One imported module: its dotted name, its line, and whether it waits for a call."""

    module: str
    line: int
    lazy: bool


def imports(source: str, module: str, *, is_package: bool = False) -> Iterator[Import]:
    """All imports of a module, relative ones made absolute."""
    package = module if is_package else module.rpartition(".")[0]
    yield from _walk(parsed(source), package, lazy=False)


def _walk(node: ast.AST, package: str, *, lazy: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, node.lineno, lazy)
    elif isinstance(node, ast.ImportFrom):
        origin = _origin(node, package)
        for alias in node.names:
            yield Import(f"{origin}.{alias.name}", node.lineno, lazy)
    elif isinstance(node, ast.If) and _is_type_checking(node.test):
        for child in node.body:
            yield from _walk(child, package, lazy=True)
        for child in node.orelse:
            yield from _walk(child, package, lazy=lazy)
    else:
        inside = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from _walk(child, package, lazy=inside)


def _origin(node: ast.ImportFrom, package: str) -> str:
    if node.level == 0:
        return node.module or ""
    parts = package.split(".")
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, node.module] if node.module else parts)


def _is_type_checking(test: ast.expr) -> bool:
    return getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING"


def wrong_arrows(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """Sentences about the imports of one module that the pipeline does not allow."""
    home = module.split(".")[1] if "." in module else ""
    found = (
        f"line {item.line}: {fault}"
        for item in imports(source, module, is_package=is_package)
        if (fault := _fault(module, home, item))
    )
    return list(dict.fromkeys(found))


def _fault(module: str, home: str, item: Import) -> str:
    top, _, rest = item.module.partition(".")
    if top == "axode":
        return _own_fault(module, home, rest.split(".")[0], item.lazy)
    if top in FORBIDDEN.get(home, ()):
        return f"{home} knows nothing of {top}, not even inside a function"
    if top in WHEN_USED and not item.lazy:
        return f"{top} is optional: import it inside the function that uses it"
    return ""


def _own_fault(module: str, home: str, other: str, lazy: bool) -> str:
    if home in ("", "__main__"):  # the public names may come from anywhere
        return ""
    if home == "gallery":  # written as users write: the public names and the description
        allowed = other not in ORDER or other in ("errors", "argument_types", "mechanism")
        return "" if allowed or lazy else f"gallery describes and does not import {other}"
    if home not in ORDER:
        return f"{home} has no place in the pipeline: add it to ORDER in tests/house/arrows.py"
    if other not in (*ORDER, "gallery"):
        return f"{home} imports axode.{other}: name the module that holds it"
    if other == home or (other == "gallery" and home in ("literature", "cli")):
        return ""
    if other != "gallery" and ORDER.index(other) < ORDER.index(home):
        return ""
    if (module, other) in STEPS_WHEN_CALLED:
        return "" if lazy else f"{home} imports {other}: only inside the function that uses it"
    return f"{home} imports {other}, against the pipeline {' <- '.join(ORDER)}"
