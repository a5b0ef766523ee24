"""The base model: a small language model that reads pages, copies, thinks in a few words before it acts, and gives up
too early.

`make_base` writes the model that ships with the package: a tokenizer of the sites' words and a small decoder, trained
on scripted demonstrators that are impatient, not incapable. What always holds: the result is an ordinary Hugging Face
folder; the same settings make the same model on the same machine.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from tokenizers.models import WordLevel

from longstride.core.component import Component
from longstride.core.numbers import Count, CountOrZero, Weight
from longstride.core.seeds import derive, stream
from longstride.learner.auxiliary import HasLosses
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods.base import Sample, demonstration
from longstride.models.chat import ChatFormat
from longstride.models.device import place_of
from longstride.models.experts import with_experts
from longstride.models.load import Policy, load_policy, save_policy
from longstride.models.tiny import SPECIALS, TinyConfig, build_model, build_tokenizer
from longstride.rollout.context import ContextPolicy, FullHistory
from longstride.starts.demonstrators import Demonstrators, Sites, turns_of

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
    start: str = ""
    """A model that is trained on, with its own network (`model.experts` is made of parts of it) and without recitals;
    empty makes a new one. Words of the
    demonstrations that its vocabulary lacks are added, where a token is a word."""
    model: TinyConfig = TinyConfig()
    """The new network."""
    tokens: Count = 11_000_000
    """Padded training tokens of demonstrations. A context that is rebuilt counts with its longest turn alone, and
    computes more."""
    demonstrators: Demonstrators = Sites()
    """Who is imitated."""
    recitals: CountOrZero = 3000
    """Most steps before the demonstrations in which rows of random words are recited, until the model can. Copying,
    which everything else rests on, comes in them all at once after some 500 steps; pages alone had not taught it after
    ten million tokens, nor after recitals that ended just before."""
    page_weight: Weight = 0.5
    """Weight of the language-model loss on observations, beside 1 for the response to each."""
    step_tokens: Annotated[int, Field(ge=256)] = 3072
    """Padded tokens of one optimiser step, and of one forward pass where the learner asks for no fewer and the model
    does not need a step in one pass (`learner.auxiliary`)."""
    learner: LearnerConfig = LearnerConfig(lr=5e-3, warmup_steps=100, betas=(0.9, 0.98), min_lr_ratio=0.02)
    """The optimiser; `decay_steps` is set from `tokens`, and the rate stays at its peak while the model recites."""
    context: ContextPolicy = FullHistory()
    """What the policy will read in every recipe that starts from this model."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where it trains; `auto` is the GPU where there is one, unless the model is tiny (`models.device`)."""


def vocabulary(config: WarmStart) -> list[str]:
    """The texts that the tokenizer's words are taken from: `ROUND` demonstrations, and what else has to be known."""
    texts = config.demonstrators.words()
    for shown in islice(config.demonstrators.demonstrations(config.seed), ROUND):
        texts += [shown.task.goal, *shown.observations, *shown.texts]
    return texts


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
    policy = _with_words(load_policy(config.start), config) if config.start else _new(config)
    if config.start and config.model.experts:
        generator = torch.Generator().manual_seed(derive(config.seed, "experts"))
        policy = replace(policy, model=with_experts(policy.model, config.model.experts, generator))
    policy.model.to(place_of(policy.model, config.device))
    tokenizer, chat = policy.tokenizer, policy.chat
    of_a_pass = config.learner.micro_tokens
    if not isinstance(policy.model, HasLosses):  # which need a step in one pass
        of_a_pass = min(of_a_pass, config.step_tokens)
    learner = Learner(policy.model, config.learner.replace(micro_tokens=of_a_pass))
    rng, start, seen, losses = stream(config.seed, "order"), time.monotonic(), 0, []
    steps = -(-config.tokens // config.step_tokens)

    def report(share: float) -> None:
        if progress is not None and (len(losses) % 50 == 0 or share == 1):
            recent, seconds = losses[-50:], time.monotonic() - start
            progress(
                {
                    "tokens": seen,
                    "share": share,
                    "loss": sum(recent) / len(recent),
                    "seconds": seconds,
                    "tokens_per_second": seen / seconds,
                }
            )

    def train(batch: list[list[Sample]]) -> None:
        nonlocal seen
        losses.append(learner.step([turn for episode in batch for turn in episode])["loss"])
        seen += len(batch) * max(map(_length, batch))

    special = set(tokenizer.all_special_ids)
    words = [i for i in range(len(tokenizer)) if i not in special]
    recitals = 0 if config.start else config.recitals
    while len(losses) < recitals and (len(losses) < 20 or sum(losses[-20:]) > 20 * RECITES):
        train(_recital(words, chat, rng))
        report(0.0)
    learner.config = learner.config.replace(decay_steps=len(losses) + steps)
    for number, batch in zip(range(1, steps + 1), _batches(config, chat, rng), strict=False):
        train(batch)
        report(number / steps)
    save_policy(policy, folder, half=True)
    return policy


def _new(config: WarmStart) -> Policy:
    """A policy that knows nothing yet."""
    tokenizer = build_tokenizer(vocabulary(config))
    model = build_model(config.model, len(tokenizer), derive(config.seed, "weights"))
    return Policy("base", model, tokenizer, ChatFormat(tokenizer), config.model.context)


def _with_words(policy: Policy, config: WarmStart) -> Policy:
    """A policy whose vocabulary has the words of the demonstrations; what it knew keeps its embedding."""
    old, texts = policy.tokenizer, vocabulary(config)
    by_words = isinstance(old.backend_tokenizer.model, WordLevel)
    if not by_words or not any(old.unk_token_id in old(text).input_ids for text in texts):
        return policy
    tokenizer = build_tokenizer([*(word for word in old.get_vocab() if word not in SPECIALS), *texts])
    before: Any = policy.model
    shape = TinyConfig(
        width=before.config.hidden_size,
        layers=before.config.num_hidden_layers,
        heads=before.config.num_attention_heads,
        kv_heads=before.config.num_key_value_heads,
        ffn=before.config.intermediate_size,
        context=policy.max_context,
        rope_theta=before.config.rope_parameters["rope_theta"],
        experts=getattr(before.config, "experts", None),
    )
    model: Any = build_model(shape, len(tokenizer), derive(config.seed, "weights"))
    known = {word: i for word, i in tokenizer.get_vocab().items() if word in old.get_vocab()}
    weights = before.state_dict()
    embedding = model.get_input_embeddings().weight.detach().clone()
    embedding[list(known.values())] = before.get_input_embeddings().weight.detach()[[old.get_vocab()[w] for w in known]]
    model.load_state_dict({k: embedding if v.shape[:1] == (len(old),) else v for k, v in weights.items()})
    return Policy(policy.name, model, tokenizer, ChatFormat(tokenizer), policy.max_context)


def _recital(words: Sequence[int], chat: ChatFormat, rng: random.Random) -> list[list[Sample]]:
    """A batch of one-turn episodes in which 12 to 48 random words are repeated."""
    episodes = []
    for _ in range(RECITED):
        row = rng.choices(words, k=rng.randint(12, 48))
        repeated = row + chat.close
        episodes.append([demonstration(chat.observation("", first=True) + row, repeated, 1 / len(repeated))])
    return episodes


def _length(episode: list[Sample]) -> int:
    """Tokens of an episode's longest turn: of its row, under a context that only grows."""
    return max(len(turn.prompt_ids) + len(turn.sampled_ids) for turn in episode)


def _batches(config: WarmStart, chat: ChatFormat, rng: random.Random) -> Iterator[list[list[Sample]]]:
    """Batches of episodes of like length, of about `step_tokens` padded tokens, in random order."""
    count = min(ROUND, config.tokens // 100 + 1)  # a small model needs no full round
    shown = config.demonstrators.demonstrations(config.seed)
    while True:
        episodes = [turns_of(next(shown), chat, config.context, config.page_weight) for _ in range(count)]
        batches: list[list[list[Sample]]] = [[]]
        for episode in sorted(episodes, key=_length):
            if batches[-1] and (len(batches[-1]) + 1) * _length(episode) > config.step_tokens:
                batches.append([])
            batches[-1].append(episode)
        rng.shuffle(batches)
        yield from batches
