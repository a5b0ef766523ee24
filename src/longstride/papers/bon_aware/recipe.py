"""BoN-aware fine-tuning on puzzles: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import KL, Constant, Reinforce
from longstride.papers.bon_aware.method import PassAtN
from longstride.setups import puzzles
from longstride.stats import Ordering

RECIPE = puzzles.recipe(
    "bon_aware",
    group_size=32,
    credit=PassAtN(n=16),
    loss=Reinforce(aggregation=Constant(length=puzzles.TOKENS, per="episode"), kl=KL(coefficient=1e-3)),
    learner={"lr": 1e-3, "epochs": 1, "batch_samples": 256},
    evaluation={"attempts": 16, "tasks": 60},
)

ARM = RECIPE.replace(iterations=24, evaluation={"every": 8, "tasks": 200})


def _of(n: int) -> dict[str, PassAtN]:
    return {"credit": PassAtN(n=n)}


CLAIM = Claim(
    name="bon_aware",
    paper="arXiv 2412.15287, section 5.2",
    statement="Trained for the best of 16, a policy solves more tasks with 16 answers than one that was trained for a "
    "single answer on as many tokens, each at its own best rate.",
    recipe=ARM,
    arms={"best_of_16": ARM, **{f"best_of_{n}": ARM.replace(**_of(n)) for n in (1, 2, 4)}},
    measure="pass@16",
    expected=Ordering(relations=("best_of_16 > best_of_1 by 0.02",)),
    # the more answers a policy is trained for, the more it gains where it has as many
    dose=("best_of_2 > best_of_1", "best_of_4 > best_of_1", "best_of_16 > best_of_1"),
    reported=Ordering(relations=("best_of_1 > best_of_16 in success",)),
    seeds=tuple(range(1200, 1220)),
    tuning_seeds=(920, 921),
    grid={"learner.lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)},
    tuning={"iterations": 8},
    cost="sampled_tokens",
    equal_cost=True,  # how long answers become is up to what is paid for
)
