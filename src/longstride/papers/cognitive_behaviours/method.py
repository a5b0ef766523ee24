"""How often a policy shows a behaviour."""

from typing import Annotated

from pydantic import Field

from longstride.core.trajectory import Trajectory
from longstride.rollout.summary import Measure


class WordsSaid(Measure):
    """How often an episode has one of these words or phrases, in all that the policy said in it."""

    words: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
    """Counted wherever they stand, in upper and lower case alike."""

    @property
    def name(self) -> str:
        return f"said_{'_'.join(self.words[0].split())}"

    def __call__(self, trajectory: Trajectory) -> float:
        texts = [turn.text.lower() for turn in trajectory.turns]
        return float(sum(text.count(words.lower()) for text in texts for words in self.words))
