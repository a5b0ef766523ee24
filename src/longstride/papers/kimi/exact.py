"""Kimi k1.5 on enumerable answers: sixteen steps on a batch, by mirror descent and without it."""

from longstride.claims.claim import Claim
from longstride.exact.answers import SEEDS, Answers, Grouped
from longstride.exact.learner import recipe
from longstride.methods import PPO, Constant, GroupRelative, Mean, Reinforce
from longstride.papers.kimi.method import MirrorDescent
from longstride.stats import Ordering

RECIPE = recipe(
    "kimi/exact",
    Answers(tasks=tuple((chance,) for chance in (0.02, 0.05, 0.1, 0.1) * 4), vocabulary=32, decoy=0.7),
    Grouped(
        credit=GroupRelative(normalize="none"),
        loss=MirrorDescent(aggregation=Constant(per="episode")),
        rate=64.0,
        passes=16,
    ),
    iterations=30,
)

_plain = {"loss": Reinforce(aggregation=Constant(per="episode"))}

CLAIM = Claim(
    name="kimi/exact",
    paper="arXiv 2501.12599, section 2.3.2",
    statement="Where each batch is used for sixteen steps, mirror descent ends with more success than the plain policy "
    "gradient.",
    recipe=RECIPE,
    arms={
        "mirror": RECIPE,
        "plain": RECIPE.replace(method=_plain),
        "clipped": RECIPE.replace(method={"loss": PPO(aggregation=Mean(over="episode"))}),
        "one_step_mirror": RECIPE.replace(method={"passes": 1}),
        "one_step_plain": RECIPE.replace(method={"passes": 1, **_plain}),
    },
    expected=Ordering(relations=("mirror > plain by 0.1",)),
    # the first step from the policy that sampled is the same
    control=Ordering(relations=("one_step_mirror > one_step_plain by 0.01",)),
    seeds=SEEDS[:30],
)
