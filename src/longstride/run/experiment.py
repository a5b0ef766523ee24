"""Experiments: whatever `longstride train` runs in a run folder, and how one is read from TOML. No torch.

What always holds: reading a file imports the module of the type that it names and no other; a file without `type` is a
`recipe`, as all were that were written before there were several.
"""

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longstride.core.component import Component, member_of
from longstride.core.config import load_toml, read_toml

if TYPE_CHECKING:
    from longstride.run.folder import Listener
    from longstride.run.placement import Placement

DEFAULT = "recipe"
"""Type of a file that names none."""


class Experiment(Component):
    """Family: a method and its numbers, ready to be run. Iterations count from 1; 0 is what training starts from."""

    name: str
    """Name of the method: what `longstride list` shows."""
    seed: int = 0
    """Every random stream is derived from it."""

    if TYPE_CHECKING:  # a field of one member and a sum over phases of another, which a model cannot declare for both

        @property
        def iterations(self) -> int:
            """Rounds of collecting and training."""
            ...

    @abstractmethod
    def train(
        self,
        folder: Path,
        listener: "Listener | None" = None,
        resume: bool = False,
        placement: "Placement | None" = None,
    ) -> None:
        """Runs it in a run folder (see docs/architecture.md for what that holds).

        Args:
            folder: created; must not hold a run unless `resume`.
            listener: takes every metrics row and the progress between rows.
            resume: go on after the last checkpoint of the run in `folder`; start it where there is none. It may take
                longer than before, nothing else may differ.
            placement: where the run goes; in this process if left out.

        Raises:
            ConfigError: this experiment cannot run there.
            RunError: the folder holds a run already, or another experiment's; a damaged checkpoint; a full disk.
        """

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """The data that a run and its continuation share: all but how long it goes on."""


def load_experiment(path: Path) -> Experiment:
    """The experiment that a TOML file describes.

    Raises:
        ConfigError: as `core.config.load_toml`; or its `type` is none of an experiment.
    """
    return load_toml(member_of(Experiment, read_toml(path).get("type", DEFAULT), str(path)), path)
