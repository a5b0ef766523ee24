"""Cards: what is known of a paper, or of a study of our own, without importing what it runs."""

from dataclasses import dataclass
from typing import Literal, get_args

Topic = Literal[
    "agents",  # language agents that act for many turns
    "horizon",  # how many turns or tokens an agent may take, and how that changes
    "reasoning",  # thoughts and answers in one turn
    "credit",  # which token, turn or episode earned what
    "context",  # what a policy sees of its past
    "tools",  # calls of tools, and their price
    "search",  # more compute at test time
    "judges",  # rewards and verdicts that a model gives
    "scaling",  # laws of what more compute or data buy
    "preferences",  # pairs and games instead of rewards
    "proofs",  # a verifier that checks every step
    "cloning",  # learning from demonstrations
    "values",  # Q functions and critics
    "offline",  # from stored data alone, or before going online
    "design",  # find a better input of an unknown function
    "systems",  # asynchronous and large training
    "robots",
    "vision",
]
"""What a paper is about; `longstride list --topic` takes one."""

TOPICS: tuple[str, ...] = get_args(Topic)


@dataclass(frozen=True)
class Paper:
    """The card of a paper."""

    title: str
    authors: str
    """Names as on the paper, between commas; a team's own name where that is what the paper has."""
    year: int
    arxiv: str
    """Its number on arXiv, such as `2506.07976`."""
    read: Literal["full", "abstract", "notes"]
    """What of it was read for what is here: all of it, its abstract, or, beside that, its authors' code or what others
    wrote of it. Where it is not `full`, the column headed `paper` is as good as these, and what is here is after the
    paper's idea."""
    topics: tuple[Topic, ...]
    systems: tuple[int, ...] = ()
    """Rows in the table of systems."""


@dataclass(frozen=True)
class Study:
    """The card of a study of our own, which no paper has."""

    title: str
    topics: tuple[Topic, ...]
