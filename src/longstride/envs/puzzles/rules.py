"""Rules: whether a post breaks a policy that is written beside it, or one that is only named.

`post 7 yes 3 no 12 yes 9 yes ; rules 12 7 , 3 9` is answered by `answer remove`: a rule is broken by a post that has
all of its features, and a post that breaks a rule is removed. `post 7 yes 3 no ; policy 37` names a policy: its label
is fixed and nowhere to be read, so it has to be remembered. What always holds: half of the posts are to be removed.
"""

import random
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from longstride.core.numbers import Count
from longstride.core.seeds import derive
from longstride.core.task import Difficulty
from longstride.envs.puzzles.base import SOLVED, Game, OneAnswer, Puzzle, PuzzleSource, answered, at, short
from longstride.envs.text import said

REMOVE, KEEP = LABELS = ("remove", "keep")
_WORDS = ("no", "yes")
FEATURES = 30
"""A feature is a number below this."""
Feature = Annotated[int, Field(ge=0, lt=FEATURES)]


class Case(Puzzle):
    """A policy and a post."""

    rules: tuple[Annotated[tuple[Feature, ...], Field(min_length=1)], ...] = ()
    """What the policy forbids, together."""
    named: Annotated[int, Field(ge=0, le=99)] | None = None
    """The number of a policy that is not written."""
    post: Annotated[dict[Feature, bool], Field(min_length=1)]
    """Whether it has a feature."""

    @model_validator(mode="after")
    def _has_one_policy(self) -> "Case":
        if bool(self.rules) == (self.named is not None):
            raise ValueError("a policy is either written, as rules, or named")
        if unknown := {feature for rule in self.rules for feature in rule} - {*self.post}:
            raise ValueError(f"the post does not say whether it has {min(unknown)}")
        return self

    @property
    def goal(self) -> str:
        post = " ".join(f"{feature} {_WORDS[has]}" for feature, has in self.post.items())
        rules = " , ".join(" ".join(map(str, rule)) for rule in self.rules)
        return f"post {post} ; {f'rules {rules}' if rules else f'policy {self.named}'}"

    @property
    def key(self) -> str:
        return self.goal

    @property
    def label(self) -> str:
        """What is to be done with the post."""
        if self.named is not None:
            return LABELS[derive(0, "policy", self.named) % 2]
        return REMOVE if any(all(self.post[f] for f in rule) for rule in self.rules) else KEEP

    def start(self) -> Game:
        return OneAnswer(self.check)

    def check(self, answer: str) -> str:
        """The verdict of an answer."""
        return SOLVED if answer.split() == [self.label] else f"the label is {self.label} , not {short(answer)}"

    def complaint(self, text: str) -> str:
        """The answer as it was given, and that it is wrong: of two labels a verdict would say which is right."""
        return f"{said(text)} no"

    def steps(self) -> list[str]:
        """Rule by rule, each feature and whether the post has it, up to the first that it has not; a rule that is
        broken ends them. None for a policy that is named."""
        lines = []
        for rule in self.rules:
            has = [self.post[feature] for feature in rule]
            read = rule[: has.index(False) + 1] if False in has else rule
            lines.append(" ".join(f"{feature} {_WORDS[self.post[feature]]}" for feature in read))
            if all(has):
                break
        return lines

    def demonstration(self) -> list[str]:
        return [answered(self.steps(), self.label)]


class Moderation(PuzzleSource):
    """Posts to be kept or removed."""

    kind: ClassVar[type[Puzzle]] = Case
    rules: tuple[Count, Count, Count] = (2, 4, 6)
    """Rules of a policy in easy, medium and hard tasks."""
    features: Annotated[int, Field(ge=1, le=3)] = 2
    """Of a rule."""
    named: bool = False
    """Whether policies are named, and not written."""

    @model_validator(mode="after")
    def _has_features_enough(self) -> "Moderation":
        if (most := max(self.rules) * self.features) > FEATURES:
            raise ValueError(f"{most} features are needed for {max(self.rules)} rules, and there are {FEATURES}")
        return self

    def make(self, rng: random.Random, difficulty: Difficulty) -> Case:
        count = at(self.rules, difficulty)
        drawn = rng.sample(range(FEATURES), count * self.features)
        rules = [tuple(drawn[k * self.features : (k + 1) * self.features]) for k in range(count)]
        broken = rng.randrange(count) if rng.random() < 0.5 else None
        has = dict[int, bool]()
        for k, rule in enumerate(rules):
            shown = {*rule} if k == broken else {*rng.sample(rule, rng.randrange(self.features))}
            has |= {feature: feature in shown for feature in rule}
        others = [f for f in range(FEATURES) if f not in drawn]
        has |= {feature: rng.random() < 0.5 for feature in rng.sample(others, min(2, len(others)))}
        post = dict(rng.sample(sorted(has.items()), len(has)))
        return Case(named=rng.randrange(100), post=post) if self.named else Case(rules=tuple(rules), post=post)
