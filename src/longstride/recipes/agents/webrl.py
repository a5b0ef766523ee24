"""WebRL: a self-evolving curriculum, new tasks made from failed ones. Qi et al., 2024, arXiv 2411.02337.

Most tasks are solved already, or hopeless. So each phase plays new tasks, made from those that failed in the phase
before, if a critic finds them neither. Against forgetting, a KL term keeps the policy near that of the phase before, and
turns of earlier successes are trained on again where the policy is not yet sure of them.

| place | choice | paper and released code (WebArena, Llama-3.1-8B) | here |
|---|---|---|---|
| plan | `FailedTasks` | 500 tasks, which GPT-4o writes like failed ones | 256 of templates of failed ones, or of similar ones |
| plan | its band | critic's value of the first page, 0.05 to 0.75 | the same |
| roll out, score | context, `TaskReward` | older pages left out; a trained judge, right in 80 % | all pages; exact checks |
| credit | `PerplexityReplay` | successes; turns of perplexity 1/0.95 to 1/0.5; at most twice the new data | the same |
| credit | `NextAndFinal` | equation 9, lambda 0.5 | the same |
| credit | `TurnValue` | equation 8; a language model of its own, the smaller of two heads | a head on the policy's hidden state |
| update | `KL` of actions, to `Latest` | equation 6, to the policy of the phase before; beta 1 in the release | the same |
| update | rate, batch, passes | AdamW, 1e-6, 128, 1 | 4e-4, 384, 2 |

The loss of equation 6, (beta log(pi(a|s) / ref(a|s)) - A)^2, has 2 beta times the gradient of -A log pi(a|s) + beta
log(pi / ref)^2 / 2: it is `Reinforce` under the `k2` estimate of the KL divergence of whole actions. The release does
otherwise: A becomes 1 or -0.6, only positive ones are trained, beta is 5 where the reference is sure.

Deviations: a model of about a million parameters on embedded sites, so rate, batch and critic are a small model's.
Templates write the tasks and know the answers. Failed tasks are drawn from all families alike, not from sites alone:
comparisons, which fail most, were 191 of 256 tasks after ten iterations otherwise. The critic learns after the policy,
so the first iteration trains it alone. In one run, tasks drawn uniformly did no worse.
"""

import random
from collections.abc import Sequence
from itertools import count, islice
from math import exp
from statistics import fmean

from longstride.claims.claim import Claim
from longstride.core.errors import ConfigError
from longstride.core.experience import Experience
from longstride.core.numbers import Count, Share, Weight
from longstride.core.task import Task
from longstride.core.trajectory import EpisodeRecord, TaskKey, Trajectory
from longstride.curriculum import TaskCurriculum
from longstride.envs.base import TaskSource
from longstride.envs.sites.tasks import EmbeddedWeb, templates
from longstride.learner.critics import TurnValue
from longstride.methods import KL, Credit, OnPolicy, Reinforce, Sample
from longstride.methods.anchors import Latest
from longstride.methods.base import turn_rewards
from longstride.methods.returns import gae
from longstride.recipes.setups import sites
from longstride.stats import Ordering


def variation(task: TaskKey, source: EmbeddedWeb, rng: random.Random) -> Task | None:
    """A new task like a failed one: of its template or of one that differs from it in one parameter, of any difficulty,
    on a random site of the kind. None where that site has no such task."""
    found = templates(task.source.removeprefix("web/"))
    own = next(t for t in found if t.id == task.template_id)
    near = [t for t in found if t.family == own.family and not t.held_out and len(set(t.params) ^ set(own.params)) <= 2]
    chosen = rng.choice(near)
    return chosen.make(rng.randrange(source.per_kind), rng.getrandbits(40), rng.choice(chosen.difficulties))


class FailedTasks(TaskCurriculum):
    """New tasks made from those that failed in the iteration before, every family on every kind of site alike, in the
    band of the critic's values. Where nothing failed, and in the first iteration, candidates are the source's tasks."""

    band: tuple[Share, Share] = (0.05, 0.75)
    """Least and largest value of a task's first prompt."""
    candidates: Count = 2
    """Candidates for each task that is played."""
    order: tuple[str, ...] = ()
    """The kind of site of each iteration, the last one from then on; all kinds of the source if empty. For the claim."""

    def draw(self, source: TaskSource, n: int, rng: random.Random, experience: Experience) -> list[Task]:
        """The first `n` candidates in the band, and those nearest to it if they are fewer. A candidate whose start
        cannot be opened is left out.

        Raises:
            ConfigError: the tasks have no templates, or there is no critic.
        """
        if not isinstance(source, EmbeddedWeb) or experience.critic is None:
            raise ConfigError(
                f"curriculum {self.type_name()} needs tasks.type='embedded_web', for its templates, and a critic, for "
                f"values; got {source.type_name()} and {experience.critic}: set both, or curriculum.type='uniform'"
            )
        if self.order:
            done = experience.records[-1].iteration if experience.records else 0
            source = source.replace(sites=(self.order[min(done, len(self.order) - 1)],))
        tasks = self.evolve(source, self.candidates * n, rng, experience.records)
        opened = experience.openings(tasks)
        experience.critic.estimate(opened)
        least, largest = self.band
        values = {k: t.turns[0].estimates["value"] for k, t in enumerate(opened) if not t.stop.failed}
        nearest = sorted(values, key=lambda k: max(least - values[k], values[k] - largest, 0.0))
        return [tasks[k] for k in nearest[:n]]

    def evolve(self, source: EmbeddedWeb, n: int, rng: random.Random, records: Sequence[EpisodeRecord]) -> list[Task]:
        """`n` candidates."""
        failed: dict[tuple[str, ...], list[TaskKey]] = {}
        for r in records:
            kind, family, *_ = r.task.template_id.split("/")
            if r.iteration == records[-1].iteration and kind in source.sites and not (r.success or r.stop.failed):
                failed.setdefault((kind, family), []).append(r.task)
        if not failed:
            return source.sample(rng, n)
        made = (variation(rng.choice(failed[rng.choice(sorted(failed))]), source, rng) for _ in count())
        return list(islice((task for task in made if task is not None), n))


class PerplexityReplay(OnPolicy):
    """This iteration's episodes, and of earlier successes the turns whose perplexity, before the update, is in a band
    (the paper's actor confidence filtering): lower ones are learnt already, higher ones too far from the policy."""

    band: tuple[Share, Share] = (0.5, 0.95)
    """Inverse perplexity of a turn, the geometric mean of its tokens' probabilities: above the first, up to the second."""
    times: Weight = 2.0
    """Replayed episodes for one of this iteration, at most."""

    def draw(
        self, kept: Sequence[EpisodeRecord], fresh: int, rng: random.Random, experience: Experience
    ) -> list[EpisodeRecord]:
        old = [r for r in kept[: len(kept) - fresh] if r.success]
        chosen = rng.sample(range(len(old)), min(len(old), int(self.times * fresh)))
        return [old[k] for k in sorted(chosen)] + super().draw(kept, fresh, rng, experience)

    def select(self, samples: Sequence[Sample], experience: Experience) -> list[Sample]:
        newest = experience.records[-1].iteration
        earlier = {r.ordinal for r in experience.records if r.iteration < newest}
        replayed = [s for s in samples if s.episode in earlier]
        found = zip(replayed, experience.logprobs(replayed), strict=True)
        unsure = [s for s, logps in found if self.band[0] < exp(fmean(logps)) <= self.band[1]]
        return unsure + [s for s in samples if s.episode not in earlier]


class NextAndFinal(Credit):
    """Equation 9: A_t = lam (r_t + V_{t+1} - V_t) + (1 - lam) (R_t - V_t), R_t what was earned from turn t on. Values
    learn R_t of new episodes: whether they succeeded (equation 8). Those of replay, all successes, would raise them.

    The paper's problem has a finite horizon: an episode that a limit cut has failed, and no value follows its last turn.
    """

    lam: Share = 0.5
    """Weight of the next step against the end."""

    @property
    def estimates(self) -> frozenset[str]:
        return frozenset({"value"})

    def targets(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        newest = max((t.iteration for t in trajectories), default=0)
        earned = super().targets(trajectories)
        return [of if t.iteration == newest else [] for t, of in zip(trajectories, earned, strict=True)]

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        samples = []
        for t in (t for t in trajectories if not t.stop.failed):
            rewards_T, values_T = turn_rewards(t), [turn.estimates["value"] for turn in t.turns]
            next_T, final_T = gae(rewards_T, values_T, lam=0.0), gae(rewards_T, values_T, lam=1.0)
            for turn, a in zip(t.turns, (self.lam * next_T + (1 - self.lam) * final_T).tolist(), strict=True):
                if turn.sampled_ids:
                    samples.append(Sample.of(t, turn, [a] * len(turn.sampled_ids)))
        return samples


RECIPE = sites.recipe(
    "webrl",
    iterations=10,
    curriculum=FailedTasks(),
    replay=PerplexityReplay(),
    credit=NextAndFinal(),
    critic=TurnValue(head="bce", lr=1e-4, warmup=1),
    loss=Reinforce(kl=KL(coefficient=1.0, estimator="k2", level="sequence", anchor=Latest(every=1))),
    learner={"lr": 4e-4, "warmup_steps": 25},
    evaluation={"every": 5},
)

ARM = sites.arm(RECIPE, iterations=6, every=6).replace(tasks={"sites": ("stays",)}, evaluation={"tasks": 300})
"""Tested on the kind of site that it begins with."""
MOVING = ARM.replace(curriculum={"order": ("stays", "stays", "stays", "shop")})
_bare = {"replay": {"times": 0.0}, "loss": {"kl": None}}

CLAIM = Claim(
    name="webrl",
    paper="arXiv 2411.02337, section 3.7 and figure 5",
    statement="When tasks move on to another kind of site, replay and the KL term keep the old one from being forgotten.",
    recipe=ARM,
    arms={"moving": MOVING, "moving_bare": MOVING.replace(**_bare), "still": ARM, "still_bare": ARM.replace(**_bare)},
    expected=Ordering(relations=("moving > moving_bare by 0.02",)),
    # where tasks stay there is nothing to forget
    control=Ordering(relations=("still > still_bare by 0.02",)),
)
