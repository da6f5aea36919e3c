"""Python programs that are started do not import from the working folder."""

import ast

from house.tree import nodes, relative, tracked_files


def unguarded(source: str) -> list[str]:
    """Commands `python -c` without -P, with their lines."""
    found = []
    for node in nodes(source):
        if isinstance(node, ast.List | ast.Tuple):
            words = [ast.unparse(word) for word in node.elts]
            if "sys.executable" in words and "'-c'" in words and "'-P'" not in words:
                found.append(f"line {node.lineno}: python -c without -P")
    return found


def test_finds_them():
    assert unguarded("import sys\nrun([sys.executable, '-c', code])")
    assert not unguarded("import sys\nrun([sys.executable, '-P', '-c', code])")


def test_no_program_imports_from_the_working_folder():
    paths = [path for path in tracked_files() if path.suffix == ".py"]
    found = [f"{relative(path)}, {line}" for path in paths for line in unguarded(path.read_text())]
    assert not found, "\n".join(found)
