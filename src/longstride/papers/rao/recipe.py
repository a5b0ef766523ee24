"""RAO at vaults, whose keys lie in vaults: the recipe and its claim.

With your own: `longstride train rao model=MODEL`, with `tasks.tasks` and `tasks.by` (see the paper's page).
"""

from longstride.claims.claim import Claim
from longstride.curriculum import BudgetSchedule
from longstride.envs.puzzles import Vaults
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, Mean, OnPolicy
from longstride.papers.rao.method import Delegated, Delegating, Delegation, Keys, NodeRelative, Recursive, VaultAgents
from longstride.rewards import TaskReward
from longstride.rollout.context import FullHistory
from longstride.run.imitation import Cloning
from longstride.run.recipe import Evaluation, Recipe
from longstride.starts.scripted import ScriptedDemonstrations
from longstride.stats import Ordering

BY = Delegation(verb="find", tasks=Keys(), failed="wall", deepest=6, agents=64)
"""In words that the start knows: what is delegated reads as a goal does."""
LIMITS = BudgetSchedule(turns=8, turn_tokens=3)
"""Of each agent: the size of its context. A tree of depth 1 takes 3 turns alone, one of depth 3 up to 21."""
LEARNER = LearnerConfig(lr=1e-3, warmup_steps=5, batch_samples=256, dtype="float32", threads="auto")

RECIPE = Recipe(
    name="rao",
    iterations=12,
    episodes_per_iteration=64,
    group_size=8,
    model="base-trials",
    cloning=Cloning(
        demonstrations=ScriptedDemonstrations(demonstrators=VaultAgents(), page_weight=0),
        episodes=3000,
        learner=LEARNER.replace(lr=2e-3, warmup_steps=20, batch_samples=64),
    ),
    tasks=Delegating(tasks=Vaults(), by=BY),
    sampler=Delegated(),
    budget=LIMITS,
    test_budget=LIMITS,
    context=FullHistory(),
    reward=TaskReward(),
    replay=OnPolicy(),
    credit=NodeRelative(),
    loss=PPO(aggregation=Mean(over="token")),
    learner=LEARNER,
    evaluation=Evaluation(every=4, tasks=150, baselines=False, strategies=(Recursive(),)),
).replace(engine={"processes": "auto"})


ALONE = RECIPE.replace(
    tasks={"by": {"deepest": 0}}, cloning={"demonstrations": {"demonstrators": {"delegates": 0.0}}}, iterations=24
)
"""Nobody delegates, and the start was shown how everything is found alone."""

CLAIM = Claim(
    name="rao",
    paper="arXiv 2605.06639, abstract",
    statement="By equal sampled tokens of training, a policy that delegates to new instances of itself ends with more success than one that does "
    "all in one context, and by the more the more a task takes.",
    recipe=RECIPE,
    arms={
        "recursive": RECIPE,
        "alone": ALONE,
        "no_bonus": RECIPE.replace(credit={"bonus": 0.0}),
        "unweighted": RECIPE.replace(credit={"by_depth": False}),
    },
    expected=Ordering(relations=("recursive > alone by 0.1",)),
    dose=tuple(f"recursive > alone in success_{far}" for far in ("easy", "medium", "hard")),
    reported=Ordering(relations=("recursive > no_bonus", "recursive > unweighted")),
    seeds=tuple(range(2120, 2132)),
    tuning_seeds=(995, 996),
    grid={"learner.lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)},
    cost="sampled_tokens",
    equal_cost=True,
)

FINDING = (
    "By as many sampled tokens the success of a policy that delegates is higher by 0.30 [0.23, 0.37] than that of one that does all alone, "
    "which has 0.32; by as many environment steps it is by 0.19. Alone nothing is solved but tasks of depth 1, where it is ahead by 0.07. "
    "The difference is larger at depth 2 (0.57) than at depth 3 (0.40), so it does not rise all the way. Neither the bonus for the success "
    "of those that it delegates to (+0.01 [-0.06, 0.09]) nor the weights by depth (-0.05 [-0.09, -0.00]) help here."
)
