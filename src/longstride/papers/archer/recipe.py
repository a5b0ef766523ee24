"""ArCHer on puzzles: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.envs.puzzles import ModularChain, TwentyQuestions
from longstride.learner.config import LearnerConfig
from longstride.methods import GroupRelative, OnPolicy, Reinforce
from longstride.papers.archer.method import DoubleValue, StateReplay, TurnAdvantage
from longstride.run.imitation import Cloning
from longstride.setups import puzzles
from longstride.stats import Ordering

LIMITS = {"turns": 5, "turn_tokens": 8}
"""Four questions, as many as eight numbers need, and a turn that is none."""
RECIPE = puzzles.recipe(
    "archer",
    credit=TurnAdvantage(),
    loss=Reinforce(),
    critic=DoubleValue(),
    replay=StateReplay(),
    tasks=TwentyQuestions(sizes=(4, 6, 8), questions=4),
    budget=LIMITS,
    test_budget=LIMITS,
    cloning=Cloning(episodes=1500, learner=LearnerConfig(lr=1e-3, epochs=3, batch_samples=64)),
    iterations=20,
    episodes_per_iteration=512,
    group_size=1,
    learner={"lr": 1e-4, "epochs": 1, "batch_samples": 600},
    evaluation={"every": 4, "tasks": 600},
)
REINFORCE = RECIPE.replace(credit=GroupRelative(baseline="batch", normalize="none"), critic=None).replace(
    replay=OnPolicy(), learner={"batch_samples": 150}
)
"""The return of the episode as the advantage of all its tokens, less the mean return of the iteration."""
_once = {"turns": 1, "turn_tokens": puzzles.TOKENS}
ONE_TURN = {"tasks": ModularChain(), "cloning": None, "budget": _once, "test_budget": _once}

CLAIM = Claim(
    name="archer",
    paper="arXiv 2402.19446, section 5 and figure 3",
    statement="After as many turns of a game of several, ArCHer solves more of it than REINFORCE, each at its own best "
    "rate.",
    recipe=RECIPE,
    arms={
        "archer": RECIPE,
        "reinforce": REINFORCE,
        "one_turn_archer": RECIPE.replace(**ONE_TURN),
        "one_turn_reinforce": REINFORCE.replace(**ONE_TURN),
    },
    expected=Ordering(relations=("archer > reinforce by 0.05",)),
    control=Ordering(relations=("one_turn_archer > one_turn_reinforce by 0.05",)),  # no turns to tell apart
    tuning_seeds=(971, 972),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    tuning={"iterations": 10, "evaluation.every": 10},
    cost="env_steps",
    equal_cost=True,
)
