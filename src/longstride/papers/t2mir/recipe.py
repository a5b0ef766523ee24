"""T2MIR on worlds of several kinds: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.envs.hidden import Corridors, DarkRooms, HiddenWorlds, SeveralWorlds
from longstride.rollout.hidden import Regret, ShareOfMost
from longstride.run.histories import LearningHistories
from longstride.run.recipe import Recipe
from longstride.setups import trials
from longstride.stats import Ordering
from longstride.strategies import Direct
from longstride.strategies.learners import AnyChoice, Optimal, PlayedBy, QLearning

KINDS: tuple[HiddenWorlds, ...] = (Corridors(), trials.BANDITS.replace(arms=3, pulls=5), DarkRooms(size=5, turns=8))

RECIPE = trials.recipe(
    "t2mir",
    LearningHistories(learner=QLearning(), labels=Optimal(), windows=2),
    tasks=SeveralWorlds(worlds=KINDS),
    episodes=8,
    beside=(QLearning(), AnyChoice()),
    model="base-trials-experts",
    cloning={"learner": {"micro_tokens": 16384}},
)

ARM = RECIPE.replace(
    evaluation={
        "strategies": (Direct(), PlayedBy(learner=QLearning())),
        "measures": (Regret(), ShareOfMost()),
    },
)


def _arm(kinds: int, experts: bool) -> Recipe:
    model = "base-trials-experts" if experts else "base-trials"
    return ARM.replace(model=model, tasks=SeveralWorlds(worlds=KINDS[:kinds]))


CLAIM = Claim(
    name="t2mir",
    paper="arXiv 2506.05426, abstract, and the released code",
    statement="On tasks of several kinds a policy with experts of tokens and of tasks earns more in its context than a dense one of equal active "
    "size from as many histories.",
    recipe=ARM,
    arms={
        "experts": ARM,
        "dense": _arm(3, False),
        "experts_2": _arm(2, True),
        "dense_2": _arm(2, False),
        "experts_1": _arm(1, True),
        "dense_1": _arm(1, False),
        "untold": ARM.replace(cloning={"demonstrations": {"windows": 1}}),
    },
    measure="reward",
    expected=Ordering(relations=("experts > dense by 0.1",)),
    # kinds pay differently, an episode 1, 3.75 and 6.5 at most in the mean, so strengths are compared by shares of that
    dose=tuple(f"experts{n} > dense{n} in share_of_most" for n in ("_1", "_2", "")),
    # all tasks are of one kind, which pays about a quarter of what tasks of all kinds do
    control=Ordering(relations=("experts_1 > dense_1 by 0.03",)),
    reported=Ordering(relations=("experts > untold", "experts > experts@q_learning")),
    scale=(0.0, 5.0),
    seeds=tuple(range(880, 888)),
    tuning_seeds=(900, 901),
    grid={"cloning.learner.lr": (2e-4, 6e-4, 2e-3, 6e-3, 2e-2)},
    # half of the passes, and a cosine that ends with them: rates are ranked under the schedule of the whole
    tuning={"cloning.learner.epochs": 2, "cloning.learner.decay_steps": 625},
    # as many histories are imitated; in the iteration after that nothing is trained, and who gets farther takes more steps
    cost="iterations",
)
