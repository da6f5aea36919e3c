"""Completion scripts, as a shell runs them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from axode.cli import VERBS, run


@pytest.fixture
def script(capsys):
    def make(shell):
        assert run(["completion", shell]) == 0
        return capsys.readouterr().out

    return make


def complete(script: str, folder, *words: str) -> list[str]:
    """Return what bash offers for the last of the words."""
    listed = " ".join(f"'{word}'" for word in words)
    asked = f"{script}\nCOMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _axode"
    asked += "; printf '%s\\n' \"${COMPREPLY[@]}\""
    done = subprocess.run(
        ["bash", "-c", asked], cwd=folder, capture_output=True, text=True, check=False
    )
    assert not done.stderr, done.stderr
    return sorted(line for line in done.stdout.splitlines() if line)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_what_may_follow(script, tmp_path):
    bash = script("bash")
    for name in ("robot.toml", "robot.urdf", "run.npz", "run.csv", "notes.txt", "two words.toml"):
        (tmp_path / name).touch()
    (tmp_path / "study").mkdir()

    def ask(*words):
        return complete(bash, tmp_path, "axode", *words)

    assert {verb.__name__ for verb in VERBS} <= set(ask(""))
    assert ask("si") == ["simulate"]
    assert ask("simulate", "wheeled") == ["wheeled_pendulum"]
    assert {"robot.toml", "two words.toml", "study", "four_bar"} <= set(ask("check", ""))
    assert "notes.txt" not in ask("check", "")
    assert ask("simulate", "four_bar", "--me") == ["--method"]
    assert ask("simulate", "four_bar", "--method", "r") == ["radau9", "rk4", "rodas5p"]
    assert ask("view", "four_bar", "--run", "r") == ["run.npz"]
    assert ask("inverse", "four_bar", "--motion", "r") == ["run.csv", "run.npz"]
    assert ask("sweep", "four_bar", "--store", "") == ["study"]
    assert ask("simulate", "four_bar", "--time", "") == []
    assert ask("page", "four_bar", "-o", "") == ["study"]
    assert ask("view", "four_bar", "--no") == ["--no-browser"]
    assert ask("animate", "four_bar", "--no-f") == ["--no-follow"]
    assert ask("completion", "f") == ["fish"]
    assert ask("unknown", "x") == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_for_other_shells(script, shell):
    """Every verb and option is in them; the shell itself checks the syntax where there is one."""
    text = script(shell)
    assert all(verb.__name__ in text for verb in VERBS)
    assert "bashcompinit" in text or "__fish_seen_subcommand_from sweep' -l store" in text
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


def test_an_unknown_shell(capsys):
    assert run(["completion", "tcsh"]) == 2
    assert "tcsh" in capsys.readouterr().err
