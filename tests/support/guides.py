"""Runs the code of a guide as a reader would, from top to bottom, in an empty folder; and modules that a test writes,
forgotten afterwards."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longstride.cli.main import main

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
_NAMED = re.compile(r"# ([\w/]+\.\w+)\n")


def follow(guide: str, home: Path, *overrides: str) -> None:
    """Follows a guide: a block that opens with `# NAME.EXT` is written to that file, other Python is run, and so are
    the commands `longstride ...` of a console block, with further overrides where they take any, and `git ...`."""
    names: dict[str, object] = {"__name__": "guide"}
    for kind, text in _BLOCK.findall((DOCS / "guides" / guide).read_text(encoding="utf-8")):
        if named := _NAMED.match(text):
            content = text.partition("\n")[2] if kind in ("json", "jinja") else text  # no comments there
            (home / named[1]).write_text(content, encoding="utf-8")
        elif kind == "python":
            exec(compile(text, guide, "exec"), names)
        elif kind == "console":
            for line in text.replace("\\\n", " ").splitlines():
                program, *args = shlex.split(line, comments=True)
                if program == "git":
                    subprocess.run([program, *args], cwd=home, check=True)
                    continue
                further = () if args[0] == "export" else overrides
                assert program == "longstride" and main([*args, *further]) == 0, line


@contextmanager
def own_modules(folder: Path) -> Iterator[None]:
    """Within it modules below a folder may be imported; afterwards Python knows neither them nor their folders."""
    path = list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = path
        inside = [n for n, m in sys.modules.items() if str(getattr(m, "__file__", "")).startswith(str(folder))]
        for name in inside:
            del sys.modules[name]
