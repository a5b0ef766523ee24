"""ArCHer: hierarchical multi-turn RL. Zhou et al., 2024, "ArCHer: Training Language Model Agents via Hierarchical
Multi-Turn RL", arXiv 2402.19446.

Two levels. Over turns a critic learns off-policy, by temporal differences on the episodes of all iterations; within a
turn the policy learns token by token, and the critic's advantage is its reward. So an episode teaches for as long as it
is stored, and a turn is credited with what it did itself.

| place | choice | paper and release (Twenty Questions; GPT-2, RoBERTa) | here |
|---|---|---|---|
| plan | tasks uniform | 128 episodes an iteration, 20 questions | 128, 5 questions |
| score | `TaskReward` | -1 for each question that is not the right guess | 1 for the right guess |
| critic | `DoubleValue` | two Q, two V, one encoder of their own; discount 0.95, tau 0.1 | the same |
| critic | steps | 50 of 256 turns, 2e-5, clip 1; 20 iterations alone | 20 of 128, 5e-4, clip 1; 2 alone |
| credit | `UniformReplay`, `ProposalCredit` | stored turns, in each a new action; no baseline of tokens | the same |
| update | `Reinforce` | 3 steps of 256 turns, 1e-6, clip 1 | 5 of 256, 1e-3 |

Deviations: the policy proposes actions once an iteration, not for every step; turns are drawn by episodes; an episode
that a budget truncated goes on from its last state, where the release ends it; what the critic reads of an action is
its encoder's state after prompt and action, not of the action alone.
"""

import copy
import random
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import ClassVar

import torch
from torch import Tensor, nn

from longstride.claims.claim import Claim
from longstride.core.experience import Experience
from longstride.core.numbers import Count, CountOrZero, Positive, Share
from longstride.core.trajectory import EpisodeRecord, Trajectory, Turn
from longstride.envs.puzzles import ModularChain, TwentyQuestions
from longstride.learner.batching import shuffled, steps_of
from longstride.learner.config import LearnerConfig
from longstride.learner.critics import Critic, CriticBatch, CriticConfig, HiddenStates
from longstride.learner.networks import Encoder, TrainedNetworks
from longstride.methods import Credit, GroupRelative, OnPolicy, Reinforce, Replay, Sample
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, turn_rewards
from longstride.models.mlp import Trunk, polyak
from longstride.recipes.setups import puzzles
from longstride.run.imitation import Cloning
from longstride.stats import Ordering

ESTIMATES = frozenset({"value", "action_value"})
"""V of the state before a turn, and Q of its action there."""


class UniformReplay(Replay):
    """Episodes of all iterations, each as likely as any other."""

    keep: Count = 128
    """Episodes of one update."""

    def wants(self, episode: EpisodeRecord) -> bool:
        return True

    def draw(
        self, kept: Sequence[EpisodeRecord], fresh: int, rng: random.Random, experience: Experience
    ) -> list[EpisodeRecord]:
        return [kept[k] for k in sorted(rng.sample(range(len(kept)), min(self.keep, len(kept))))]


class ProposalCredit(Credit):
    """The tokens of an action that the policy proposes in a stored turn have its advantage, Q of the action less V of
    the state. States are off-policy, actions are on-policy: there is nothing to correct.

    V follows Q with a delay, so that advantages of one policy have a mean; it is taken off, for it would make all that
    was proposed less (or more) likely than what was not.
    """

    @property
    def estimates(self) -> frozenset[str]:
        return ESTIMATES

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        found = [(t, n, turn, a) for t in trajectories for n, turn in enumerate(t.turns) for a in turn.proposals]
        advantages = [a.estimates["action_value"] - turn.estimates["value"] for _, _, turn, a in found]
        mean = fmean(advantages) if advantages else 0.0
        samples = []
        for (t, number, turn, action), advantage in zip(found, advantages, strict=True):
            advantages_T = [advantage - mean] * len(action.sampled_ids)
            streams = {ADVANTAGES: advantages_T, BEHAVIOUR: action.behaviour_logprobs}
            samples.append(Sample(turn.prompt_ids, action.sampled_ids, streams, t.ordinal, t.group, number))
        return samples


class DoubleValue(CriticConfig):
    """Q of a turn's action and V of the state before it, learnt from the episodes of all iterations."""

    estimates: ClassVar[frozenset[str]] = ESTIMATES
    encoder: str = "base-puzzles"
    """The model that reads prompts and actions, trained too: as `Recipe.model`, and of its tokenizer."""
    width: Count = 96
    """Units of the two hidden layers behind it."""
    discount: Share = 0.95
    """Weight of what is one turn later."""
    tau: Share = 0.1
    """Part of the way that targets move to the networks after each step."""
    lr: Positive = 5e-4
    """Learning rate of Adam."""
    clip: Positive = 1.0
    """Largest norm of the gradient of a step."""
    episodes: Count = 128
    """Stored episodes that are drawn in an iteration, at most."""
    epochs: Count = 4
    """Passes over their turns."""
    batch_episodes: Count = 32
    """Episodes of a step, about."""
    proposals: Count = 1
    """Actions that the policy proposes in a turn."""
    warmup: CountOrZero = 2
    """Iterations at the start of a run in which the critic alone learns."""

    def make(self, policy: HiddenStates, seed: int) -> Critic:
        """See `DoubleCritic`; it reads nothing of the policy."""
        return DoubleCritic(self, seed)


class ValueNetworks(nn.Module):
    """Two Q and two V on one encoder."""

    def __init__(self, config: DoubleValue, seed: int) -> None:
        super().__init__()
        self.encoder = Encoder(config.encoder)
        trunk, generator = Trunk(width=config.width, depth=2), torch.Generator().manual_seed(seed)
        self.q = trunk.make(2 * self.encoder.width, 1, generator, members=2, last=1e-2)
        self.v = trunk.make(self.encoder.width, 1, generator, members=2, last=1e-2)

    def forward(self, actions: Sequence[tuple[list[int], list[int]]]) -> tuple[Tensor, Tensor]:
        """[2, N] values of Q and of V for N actions, each a prompt and the ids after it, at least one."""
        # read are the hidden states before the first of them and behind the last, which is before one more
        ends = [[1.0, *[0.0] * (len(ids) - 1), 1.0] for _, ids in actions]
        samples = [Sample(prompt, [*ids, 0], {ADVANTAGES: e}) for (prompt, ids), e in zip(actions, ends, strict=True)]
        ends_N_2_D = self.encoder.features(samples).unflatten(0, (-1, 2))
        return self.q(ends_N_2_D.flatten(1))[..., 0], self.v(ends_N_2_D[:, 0])[..., 0]


class DoubleCritic:
    """A `DoubleValue` at work. Each of its two pairs minimises, over stored turns (s, a, r, s') of whatever policy,

        (Q(s, a) - r - discount V_target(s'))^2 + (V(s) - Q_target(s, a'))^2,   a' proposed in s by the policy as it is

    An estimate is the smaller of the two. An episode that a budget truncated goes on from its last state (see `GAE`).
    """

    def __init__(self, config: DoubleValue, seed: int) -> None:
        self.config = config
        self.online = ValueNetworks(config, seed)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self._trained = TrainedNetworks({"online": self.online, "target": self.target}, config.lr, config.clip)

    @torch.no_grad()
    def estimate(self, trajectories: Sequence[Trajectory]) -> None:
        taken = [(turn, action) for t in trajectories for turn in t.turns for action in (turn, *turn.proposals)]
        if taken:
            values = self.online([(turn.prompt_ids, action.sampled_ids or [0]) for turn, action in taken])
            for (_, action), q, v in zip(taken, *(value_2_N.amin(0).tolist() for value_2_N in values), strict=True):
                action.estimates |= {"action_value": q, "value": v}

    def before_update(self, batch: CriticBatch) -> dict[str, float]:
        """Learns from all that is stored, and then estimates what the policy proposes where it is trained."""
        c, experience = self.config, batch.experience
        records = [record for record in experience.records if not record.stop.failed]
        stored = experience.read(batch.rng.sample(records, min(c.episodes, len(records))))
        drawn = [[t] for t in stored if any(turn.sampled_ids for turn in t.turns)]
        self._propose(stored, batch)
        parts = [part for _ in range(c.epochs) for part in steps_of(shuffled(drawn, batch.rng), c.batch_episodes)]
        losses = torch.zeros(2)
        for part in parts:
            turns, *targets = self.targets(part)
            values = self.online([(turn.prompt_ids, turn.sampled_ids) for turn in turns])
            errors = torch.stack([(x - y).square().mean(1).sum() for x, y in zip(values, targets, strict=True)])
            self._trained.step(errors.sum())
            polyak(self.target, self.online, c.tau)
            losses += errors.detach() / len(parts)
        self._propose(batch.trajectories, batch)
        self.estimate(batch.trajectories)
        adv = torch.tensor([a.estimates["action_value"] - u.estimates["value"] for t in batch.trajectories for u in t.turns for a in u.proposals])
        return dict(zip(("action_value_loss", "value_loss"), losses.tolist(), strict=True)) | {"adv_mean": adv.mean().item(), "adv_std": adv.std().item()}

    def after_update(self, batch: CriticBatch) -> dict[str, float]:
        return {}

    @torch.no_grad()
    def targets(self, episodes: Sequence[Trajectory]) -> tuple[list[Turn], Tensor, Tensor]:
        """The N turns that the policy took in these episodes, and [2, N] that Q and V should be there."""
        turns: list[Turn] = []
        rewards, discounts, following = [], [], []
        for t in episodes:
            taken = [(turn, reward) for turn, reward in zip(t.turns, turn_rewards(t), strict=True) if turn.sampled_ids]
            turns += [turn for turn, _ in taken]
            rewards += [reward for _, reward in taken]
            last = len(turns) - 1
            following += [*range(len(following) + 1, last + 1), last]
            discounts += [self.config.discount] * (len(taken) - 1) + [self.config.discount * t.stop.truncated]
        actions = [(turn.prompt_ids, turn.sampled_ids) for turn in turns]
        proposed = [(turn.prompt_ids, action.sampled_ids) for turn in turns for action in turn.proposals]
        q_2_A, v_2_A = self.target(actions + proposed)
        next_2_N = v_2_A[:, following]
        q_target_2_N = torch.tensor(rewards) + torch.tensor(discounts) * next_2_N
        return turns, q_target_2_N, q_2_A[:, len(turns) :].unflatten(1, (len(turns), -1)).mean(2)

    def _propose(self, trajectories: Sequence[Trajectory], batch: CriticBatch) -> None:
        """Asks the policy for actions in each of its turns."""
        turns, n = [turn for t in trajectories for turn in t.turns if turn.sampled_ids], self.config.proposals
        longest = max((t.budget.turn_tokens for t in trajectories), default=1)
        prompts = [turn.prompt_ids for turn in turns for _ in range(n)]
        actions = batch.experience.propose(prompts, longest, batch.rng.getrandbits(62))
        for k, turn in enumerate(turns):
            turn.proposals = actions[k * n : (k + 1) * n]

    def state(self) -> dict[str, Tensor]:
        return self._trained.state()

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        self._trained.load_state(tensors)


QUESTIONS = 5
"""As many as are needed for sixteen numbers at most."""
LIMITS = {"turns": QUESTIONS + 1, "turn_tokens": 8}

RECIPE = puzzles.recipe(
    "archer",
    credit=ProposalCredit(),
    loss=Reinforce(),
    critic=DoubleValue(),
    replay=UniformReplay(),
    tasks=TwentyQuestions(questions=QUESTIONS),
    cloning=Cloning(episodes=300, learner=LearnerConfig(lr=1e-3, epochs=4, batch_samples=64)),
    budget=LIMITS,
    test_budget=LIMITS,
    iterations=20,
    episodes_per_iteration=128,
    group_size=1,
    learner={"lr": 1e-3, "epochs": 1},
    evaluation={"every": 5, "tasks": 300},
)
REINFORCE = RECIPE.replace(credit=GroupRelative(baseline="batch", normalize="none"), critic=None, replay=OnPolicy())
"""The return of the episode as the advantage of all its tokens, less the mean return of the iteration."""
ONE_TURN = {"tasks": ModularChain(), "cloning": None, "budget": {"turns": 1, "turn_tokens": 48}}

CLAIM = Claim(
    name="archer",
    paper="arXiv 2402.19446, section 5 and figure 3",
    statement="After as many episodes of a game of several turns, ArCHer solves more of it than REINFORCE.",
    recipe=RECIPE,
    arms={
        "archer": RECIPE,
        "reinforce": REINFORCE,
        "on_policy_states": RECIPE.replace(replay=OnPolicy()),
        "one_turn_archer": RECIPE.replace(**ONE_TURN),
        "one_turn_reinforce": REINFORCE.replace(**ONE_TURN),
    },
    expected=Ordering(relations=("archer > reinforce by 0.05", "archer > on_policy_states")),
    # with one turn Q is the reward and V its mean: there is nothing to assign credit between
    control=Ordering(relations=("one_turn_archer > one_turn_reinforce by 0.05",)),
)
