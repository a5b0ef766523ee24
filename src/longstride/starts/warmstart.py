"""The base model: a small language model that reads pages, copies, thinks in a few words before it acts, and gives up
too early.

`make_base` writes the model that ships with the package: a tokenizer of the sites' words and a small decoder, trained
on scripted demonstrators that are impatient, not incapable. What always holds: the result is an ordinary Hugging Face
folder; the same settings make the same model on the same machine.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

import longstride.starts.puzzle_traces  # noqa: F401 (a member of Demonstrators that can be named in TOML)
from longstride.core.component import Component
from longstride.core.seeds import derive, stream
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.models.chat import ChatFormat
from longstride.models.load import Policy, save_policy
from longstride.models.tiny import TinyConfig, build_model, build_tokenizer
from longstride.rollout.context import ContextPolicy, KeepAll
from longstride.starts.demonstrators import Demo, Demonstrators, Sites

RECITED = 64
"""Rows of a recital."""
RECITES = 0.3
"""Loss of a word, over 20 steps, at which a model recites."""
ROUND = 1500
"""Demonstrations that are made, sorted by length and trained on together."""


class WarmStart(Component):
    """Settings of the base model."""

    seed: int = 0
    """Seed of weights and demonstrations."""
    model: TinyConfig = TinyConfig()
    """The network."""
    tokens: Annotated[int, Field(ge=1)] = 11_000_000
    """Padded training tokens of demonstrations. A context that is rebuilt counts with its last prompt alone, and
    computes more."""
    demonstrators: Demonstrators = Sites()
    """Who is imitated."""
    recitals: Annotated[int, Field(ge=0)] = 3000
    """Most steps before the demonstrations in which rows of random words are recited, until the model can. Copying,
    which everything else rests on, comes in them all at once after some 500 steps; pages alone had not taught it after
    ten million tokens, nor after recitals that ended just before."""
    page_weight: Annotated[float, Field(ge=0)] = 0.5
    """Weight of the language-model loss on pages."""
    step_tokens: Annotated[int, Field(ge=256)] = 3072
    """Padded tokens of one optimiser step."""
    learner: LearnerConfig = LearnerConfig(lr=5e-3, warmup_steps=100, betas=(0.9, 0.98), min_lr_ratio=0.02)
    """The optimiser; `decay_steps` is set from `tokens`, and the rate stays at its peak while the model recites."""
    context: ContextPolicy = KeepAll()
    """What the policy will read in every recipe that starts from this model."""


@dataclass(slots=True)
class Demonstration:
    """One turn to imitate; the page that it answers starts at `prompt_from`."""

    prompt_ids: list[int]
    sampled_ids: list[int]
    weights: list[float]
    prompt_from: int


def vocabulary(config: WarmStart) -> list[str]:
    """The texts that the tokenizer's words are taken from: `ROUND` demonstrations, and what else has to be known."""
    texts = config.demonstrators.words()
    for demo in islice(config.demonstrators.demos(config.seed), ROUND):
        texts += [demo.task.goal, *demo.pages, *demo.texts]
    return texts


def turns_of(demo: Demo, chat: ChatFormat, tokenizer: Any, context: ContextPolicy) -> list[Demonstration]:
    """The turns of a demonstration as training rows."""
    end = chat.close
    said = [tokenizer(t, add_special_tokens=False)["input_ids"] + end for t in demo.texts]
    rows = []
    for t, ids in enumerate(said):
        prompt = context.render(chat, demo.task.goal, demo.pages[: t + 1], said[:t])
        start = len(prompt) - len(chat.observation(demo.pages[t], first=t == 0))
        rows.append(Demonstration(prompt, ids, _spread(demo.weights[t], len(ids)), start))
    return rows


def _spread(weight: float | list[float], count: int) -> list[float]:
    """The weights of a turn's tokens; the token that ends a turn whose words have weights of their own has weight 1."""
    weights = [*weight, 1.0] if isinstance(weight, list) else [weight] * count
    return [w / count for w in weights]


def make_base(
    folder: Path, config: WarmStart | None = None, progress: Callable[[dict[str, float]], None] | None = None
) -> Policy:
    """Trains the base model and writes it to `folder` in half precision.

    Args:
        folder: where the Hugging Face folder is written (replaced if it is there).
        config: settings; the defaults are those of the shipped model.
        progress: called now and then with `tokens`, `share` of the demonstrations done (0 while it recites), `loss`,
            `tokens_per_second`, `seconds`.
    """
    config = config or WarmStart()
    tokenizer = build_tokenizer(vocabulary(config))
    model = build_model(config.model, len(tokenizer), derive(config.seed, "weights"))
    chat = ChatFormat(tokenizer)
    policy = Policy("base", model, tokenizer, chat, config.model.context)
    learner = Learner(model, config.learner.model_copy(update={"micro_tokens": config.step_tokens}))
    rng, start, seen, losses = stream(config.seed, "order"), time.monotonic(), 0, []
    demonstrated = -(-config.tokens // config.step_tokens)

    def tell(share: float) -> None:
        if progress is not None and (len(losses) % 50 == 0 or share == 1):
            recent, seconds = losses[-50:], time.monotonic() - start
            progress({
                "tokens": seen, "share": share, "loss": sum(recent) / len(recent), "seconds": seconds,
                "tokens_per_second": seen / seconds,
            })  # fmt: skip

    def train(batch: list[list[Demonstration]], page_weight: float) -> None:
        nonlocal seen
        losses.append(learner.step([turn for episode in batch for turn in episode], page_weight)["loss"])
        seen += len(batch) * max(map(_length, batch))

    special = set(tokenizer.all_special_ids)
    words = [i for i in range(len(tokenizer)) if i not in special]
    while len(losses) < config.recitals and (len(losses) < 20 or sum(losses[-20:]) > 20 * RECITES):
        train(_recital(words, chat, rng), 0.0)
        tell(0.0)
    learner.config = learner.config.model_copy(update={"decay_steps": len(losses) + demonstrated})
    for number, batch in zip(range(1, demonstrated + 1), _batches(config, chat, tokenizer, rng), strict=False):
        train(batch, config.page_weight)
        tell(number / demonstrated)
    save_policy(policy, folder, half=True)
    return policy


def _recital(words: Sequence[int], chat: ChatFormat, rng: random.Random) -> list[list[Demonstration]]:
    """A batch of one-turn episodes in which 12 to 48 random words are said again."""
    rows = []
    for _ in range(RECITED):
        row = rng.choices(words, k=rng.randint(12, 48))
        said = row + chat.close
        rows.append(
            [Demonstration(chat.observation("", first=True) + row, said, [1 / len(said)] * len(said), len(row))]
        )
    return rows


def _length(episode: list[Demonstration]) -> int:
    """Tokens of an episode's row (under a context that only grows)."""
    return len(episode[-1].prompt_ids) + len(episode[-1].sampled_ids)


def _batches(
    config: WarmStart, chat: ChatFormat, tokenizer: Any, rng: random.Random
) -> Iterator[list[list[Demonstration]]]:
    """Batches of episodes of like length, of about `step_tokens` padded tokens, in random order."""
    count = min(ROUND, config.tokens // 100 + 1)  # a small model needs no full round
    stream_of_demos = config.demonstrators.demos(config.seed)
    while True:
        episodes = [turns_of(next(stream_of_demos), chat, tokenizer, config.context) for _ in range(count)]
        batches: list[list[list[Demonstration]]] = [[]]
        for episode in sorted(episodes, key=_length):
            if batches[-1] and (len(batches[-1]) + 1) * _length(episode) > config.step_tokens:
                batches.append([])
            batches[-1].append(episode)
        rng.shuffle(batches)
        yield from batches
