"""What a kept result says of where it comes from."""

import subprocess
from pathlib import Path


def commit() -> str | None:
    """The commit of the code that runs, where it is a checkout."""
    try:
        git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
        return subprocess.run(git, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
