"""Every error is raised by a test, and a test quotes its text."""

from house.error_texts import (
    caught_in,
    error_classes,
    package_texts,
    quotations,
    texts_in,
    unquoted,
)
from house.tree import ROOT

TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py") if "house" not in path.parts)


def test_every_class_of_errors_is_raised_in_a_test():
    classes = error_classes()
    assert "InvalidArgument" in classes and "LeftOut" in classes
    caught = set().union(*(caught_in(path.read_text(), classes) for path in TESTS))
    missing = [name for name in classes if name not in caught]
    assert not missing, f"no test expects {missing}: use pytest.raises or pytest.warns"


def test_every_text_is_quoted_in_a_test():
    texts = package_texts()
    assert len(texts) > 300
    left = unquoted(texts, *quotations(TESTS))
    named = [f"{text.path}:{text.line}: {text.pieces[0]}" for text in left]
    assert not named, "quote these texts in tests that raise them:\n  " + "\n  ".join(named)


def test_a_text_without_a_test_is_seen():
    source = (
        "raise InvalidArgument(f'duration: must be {x} at least')\n"
        "warnings.warn('steps are' ' too long', StiffSystem)\n"
        "raise ValueError('of Python, no business of ours')\n"
        "raise FileError(f'{x}')\n"
    )
    texts = list(texts_in(source, "src/a.py", ["InvalidArgument", "FileError"]))
    assert [text.pieces for text in texts] == [
        ("duration: must be", "at least"),  # and not what is filled in
        ("steps are too long",),
    ]
    assert unquoted(texts, {"steps are too"}, "steps are too") == texts[:1]
    assert unquoted(texts, set(), "x duration: must be 3 at least") == texts[1:]


def test_expected_errors_are_read():
    source = "with pytest.raises((ax.errors.FileError, KeyError), match='InvalidArgument'): pass"
    assert caught_in(source, ["FileError", "InvalidArgument"]) == {"FileError"}
