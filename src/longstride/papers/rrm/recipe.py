"""RRM on pairs of solutions that a policy wrote, with a filler that goes with the label in training: a judge is fine-tuned
on verdicts, on pairs under other tasks too.

With your own: `longstride train rrm model=MODEL tasks.path=solutions.jsonl tasks.artefact=0`, see docs/guides/judge.md.
"""

from longstride.claims.claim import Claim
from longstride.learner.config import LearnerConfig
from longstride.papers.rrm.method import CounterfactualPairs, Longer
from longstride.run.imitation import Cloning
from longstride.setups import puzzles
from longstride.stats import Ordering
from longstride.strategies import Direct

MISLED, HELPED = Longer(side="worse"), Longer(side="better")

RECIPE = puzzles.tested(
    "rrm",
    (Direct(),),
    model="base-judge",
    tasks=CounterfactualPairs(puzzles=puzzles.ALIKE, reasons=False, artefact=0.8),
    cloning=Cloning(episodes=4000, learner=LearnerConfig(lr=1e-3, batch_samples=64)),
    evaluation={"tasks": 400, "measures": (MISLED, HELPED)},
)

PLAIN = {"tasks": {"original": 1.0}}
FAIR = {"tasks": {"artefact": 0.01}}
"""A coin decides about the filler of nearly all solutions."""

CLAIM = Claim(
    name="rrm",
    paper="arXiv 2409.13156, abstract",
    statement="Where an artefact goes with the label in training, a judge that also saw answers under other prompts is right "
    "more often about pairs whose worse answer has the artefact.",
    recipe=RECIPE,
    arms={
        "augmented": RECIPE,
        "plain": RECIPE.replace(**PLAIN),
        "fair_augmented": RECIPE.replace(**FAIR),
        "fair_plain": RECIPE.replace(**FAIR).replace(**PLAIN),
    },
    measure=MISLED.name,
    expected=Ordering(relations=("augmented > plain by 0.1",)),
    # an artefact that goes with neither label misleads nobody
    control=Ordering(relations=("fair_augmented > fair_plain by 0.1",)),
    reported=Ordering(relations=("augmented > plain in success", f"plain > augmented in {HELPED.name}")),
    seeds=tuple(range(370, 378)),
    tuning_seeds=(940, 941),
    grid={"cloning.learner.lr": (1e-4, 3e-4, 1e-3, 2e-3, 4e-3)},
    tuned_by="success",
    cost="env_steps",
)

FINDING = (
    "Of as many pairs, half of them made with answers under other prompts, a judge learns less: 0.71 of its pairs are right and 0.92 of the plain judge's, and 0.59 "
    "and 0.79 of those whose worse answer has the artefact. The plain judge is misled (0.99 where the better answer has it), and the other one too (0.76)."
)
