"""What a kept result says of where it comes from."""

import subprocess
from pathlib import Path


def commit() -> str | None:
    """The commit of the code that runs, where it is a checkout."""
    return _git("rev-parse", "HEAD")


def clean() -> bool | None:
    """Whether the code that runs is that of its commit, without changes and without further files; None where it is no
    checkout."""
    changes = _git("status", "--porcelain", "--", str(Path(__file__).parent.parent))
    return None if changes is None else not changes


def _git(*arguments: str) -> str | None:
    """What Git says in the folder of the code; None where it says nothing of it."""
    try:
        git = ["git", "-C", str(Path(__file__).parent), *arguments]
        return subprocess.run(git, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
