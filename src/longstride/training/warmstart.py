"""The base model: a small language model that reads pages, copies, thinks in a few words before it acts, and gives up
too early.

`make_base` writes the model that ships with the package: a tokenizer of the sites' words and a small decoder, trained
on scripted demonstrators that are impatient, not incapable. What always holds: demonstrations use training templates,
sites and names only; each demonstrator is drawn anew (no demonstration is seen twice); the result is an ordinary
Hugging Face folder; the same settings make the same model.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from longstride.core.component import Component
from longstride.core.seeds import derive, stream
from longstride.core.task import Task
from longstride.envs.base import Env, Mix
from longstride.envs.web.demonstrator import CHECK, Demonstrator
from longstride.envs.web.sites import KINDS, lexicon
from longstride.envs.web.tasks import EmbeddedWeb
from longstride.models.chat import ChatFormat
from longstride.models.load import Policy, save_policy
from longstride.models.tiny import TinyConfig, build_model, build_tokenizer
from longstride.rollout.context import ContextPolicy, KeepAll
from longstride.strategies import CheckAgain
from longstride.training.config import LearnerConfig
from longstride.training.learner import Learner

RECITED = 64
"""Rows of a recital."""
RECITES = 0.3
"""Loss of a word, over 20 steps, at which a model recites."""
ROUND = 1500
"""Demonstrations that are made, sorted by length and trained on together."""
Share = Annotated[float, Field(ge=0, le=1)]


class Demonstrators(Component):
    """How the demonstrators behave."""

    patient: Share = 0.45
    """Share of episodes whose demonstrator never gives up: what is done late in an episode is learned from them."""
    example: Share = 0.2
    """Weight of a patient demonstrator's turns at which others would give up; small, so that what is to be done later
    is learned, and patience is not."""
    patience: Share = 0.35
    """Probability that an impatient one goes on at a point where it could give up."""
    slips: Share = 0.15
    """Largest probability of an arbitrary action; each episode draws its own below it."""
    sheet: Share = 0.1
    """Share of episodes on the fully observed control site."""
    checked: Share = 0.15
    """Share of episodes whose first answer is held back with the request to check again."""
    max_turns: Annotated[int, Field(ge=1)] = 26
    """Longest demonstration."""


class WarmStart(Component):
    """Settings of the base model."""

    seed: int = 0
    """Seed of weights and demonstrations."""
    model: TinyConfig = TinyConfig()
    """The network."""
    tokens: Annotated[int, Field(ge=1)] = 11_000_000
    """Padded training tokens of demonstrations."""
    demonstrators: Demonstrators = Demonstrators()
    """Who is imitated."""
    mix: Mix = Mix()
    """Shares of the difficulties."""
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


@dataclass
class Demo:
    """One demonstrated episode, as text: `pages[t]` was answered by `texts[t]`, which counts `weights[t]`."""

    task: Task
    pages: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)


async def demonstrate(task: Task, env: Env, agent: Demonstrator, seed: int, max_turns: int, example: float) -> Demo:
    """Lets a demonstrator act until it answers or `max_turns` are over; `example`: see `Demonstrators`."""
    demo = Demo(task)
    try:
        page = (await env.reset(task, seed)).text
        for _ in range(max_turns):
            said = agent.say(page)
            demo.pages.append(page)
            demo.texts.append(said)
            demo.weights.append(example if agent.patience == 1 and agent.hesitated else 1.0)
            step = await env.step(said)
            if step.terminated:
                break
            page = step.observation.text
    finally:
        await env.close()
    return demo


def run_now(coroutine: Any) -> Any:
    """Drives a coroutine that never suspends (in-process environments do not) without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as e:
        return e.value
    coroutine.close()
    raise RuntimeError("an in-process environment suspended")


def demos(config: WarmStart, first: int = 0) -> Iterator[Demo]:
    """Demonstrations for ever, numbered from `first`; number n is a function of (config, n)."""
    d, n = config.demonstrators, first
    web = EmbeddedWeb(mix=config.mix)
    sheet = EmbeddedWeb(sites=("sheet",), mix=Mix(easy=1, medium=0, hard=0))
    while True:
        rng = stream(config.seed, "demo", n)
        source = sheet if rng.random() < d.sheet else web
        task = source.sample(rng, 1)[0]
        patience = 1.0 if rng.random() < d.patient else d.patience
        agent = Demonstrator(task, rng, patience, d.slips * rng.random())
        env = CheckAgain(paragraph=CHECK, checks=2 if rng.random() < d.checked else 1).wrap(source.env())
        yield run_now(demonstrate(task, env, agent, derive(config.seed, "demo-env", n), d.max_turns, d.example))
        n += 1


def vocabulary(config: WarmStart) -> list[str]:
    """The texts that the tokenizer's words are taken from: the sites' lexicon and a few thousand demonstrations."""
    words = [w for name in vars(lexicon) if name.isupper() for w in getattr(lexicon, name)]
    words += [w for k in KINDS.values() for w in (*k.categories, *k.words, *k.numbers, *k.reference.attributes, k.flag)]
    texts = sorted(set(words))
    for demo, _ in zip(demos(config), range(1500), strict=False):
        texts += [demo.task.goal, *demo.pages, *demo.texts]
    return [*texts, "omitted", CHECK, "error : is not an element of this page"]


def turns_of(demo: Demo, chat: ChatFormat, tokenizer: Any, context: ContextPolicy) -> list[Demonstration]:
    """The turns of a demonstration as training rows."""
    end = chat.close
    said = [tokenizer(t, add_special_tokens=False)["input_ids"] + end for t in demo.texts]
    rows = []
    for t, ids in enumerate(said):
        prompt = context.render(chat, demo.task.goal, demo.pages[: t + 1], said[:t])
        start = len(prompt) - len(chat.observation(demo.pages[t], first=t == 0))
        rows.append(Demonstration(prompt, ids, [demo.weights[t] / len(ids)] * len(ids), start))
    return rows


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
    stream_of_demos = demos(config)
    while True:
        episodes = [turns_of(next(stream_of_demos), chat, tokenizer, config.context) for _ in range(count)]
        batches: list[list[list[Demonstration]]] = [[]]
        for episode in sorted(episodes, key=_length):
            if batches[-1] and (len(batches[-1]) + 1) * _length(episode) > config.step_tokens:
                batches.append([])
            batches[-1].append(episode)
        rng.shuffle(batches)
        yield from batches
