"""What a kept result says of where it comes from, and what the history of a file says of it."""

import subprocess
from pathlib import Path


def commit() -> str | None:
    """The commit of the code that runs, where it is a checkout."""
    return _git(Path(__file__).parent, "rev-parse", "HEAD")


def clean() -> bool | None:
    """Whether the code that runs is that of its commit, without changes and without further files; None where it is no
    checkout."""
    changes = _git(Path(__file__).parent, "status", "--porcelain", "--", str(Path(__file__).parent.parent))
    return None if changes is None else not changes


def in_history(path: Path) -> bool:
    """Whether a file stands in a checkout with a history, whether it is part of that or not."""
    return _git(_folder(path), "rev-parse", "HEAD") is not None


def committed(path: Path) -> tuple[str, str] | None:
    """What the last commit has of a file, and the commit that made it so; None where it has none."""
    text = _git(_folder(path), "show", f"HEAD:./{path.name}")
    since = _git(_folder(path), "rev-list", "-1", "HEAD", "--", path.name)
    return (text, since) if text is not None and since and path.parent.is_dir() else None


def changed_since(path: Path) -> bool:
    """Whether anything that the history around a file has is otherwise now."""
    return bool(_git(_folder(path), "status", "--porcelain", "--untracked-files=no"))


def came_after(later: str, earlier: str, path: Path) -> bool | None:
    """Whether a commit of the history around a file has another one among its ancestors, or is it; None where it knows
    one of them not."""
    git = ["git", "-C", str(_folder(path)), "merge-base", "--is-ancestor", earlier, later]
    try:
        code = subprocess.run(git, capture_output=True, timeout=10).returncode
    except (OSError, subprocess.SubprocessError):
        return None
    return {0: True, 1: False}.get(code)


def _folder(path: Path) -> Path:
    """The nearest folder above a file that there is."""
    return next(folder for folder in path.absolute().parents if folder.is_dir())


def _git(folder: Path, *arguments: str) -> str | None:
    """What Git says in a folder; None where it says nothing of it."""
    try:
        git = ["git", "-C", str(folder), *arguments]
        return subprocess.run(git, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
