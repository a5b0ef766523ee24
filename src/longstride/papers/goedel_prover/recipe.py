"""Goedel-Prover-V2 on chains, whose verifier says which step of an answer is wrong: RL on whole answers, on corrections of
failed ones and on what they left to be done.

With your own: `longstride train goedel_prover model=MODEL tasks.puzzles.type=SOURCE`, puzzles with a verifier; and
`models.merge.merge_folders(RUN_MODEL, MODEL, folder, share=0.8)` averages the weights with those of the start.
"""

from longstride.claims.claim import Claim
from longstride.envs.puzzles import Corrected
from longstride.methods import PPO, Constant, GroupRelative
from longstride.papers.goedel_prover.method import Corrections, PassRate, SolvedWithin
from longstride.rollout.context import FullHistory
from longstride.setups import puzzles
from longstride.stats import Ordering

ATTEMPTS = 3  # one, and two rounds of correction (section 3.2)

RECIPE = puzzles.recipe(
    "goedel_prover",
    iterations=20,
    tasks=Corrected(attempts=ATTEMPTS),
    budget={"turns": ATTEMPTS},
    test_budget={"turns": ATTEMPTS},
    sampler=Corrections(subgoals=0.25),
    context=FullHistory(),
    replay=PassRate(),
    credit=GroupRelative(normalize="none"),
    loss=PPO(clip_high=0.28, aggregation=Constant(length=puzzles.TOKENS, per="episode")),
    learner={"lr": 1e-3},
    evaluation={"measures": (SolvedWithin(),)},
)

ARM = puzzles.arm(RECIPE, tasks=300)
_blind, _any = {"tasks": {"told": "nothing"}}, {"tasks": {"told": "any"}}

CLAIM = Claim(
    name="goedel_prover",
    paper="arXiv 2508.03613, section 3.5",
    statement="Told which step is wrong, in training and test, a policy solves more in three attempts than one that is told "
    "nothing.",
    recipe=ARM,
    arms={
        "told": ARM,
        "blind": ARM.replace(**_blind),
        "told_any": ARM.replace(**_any),
        "no_subgoals": ARM.replace(sampler={"subgoals": 0.0}),
    },
    expected=Ordering(relations=("told > blind by 0.03",)),
    # the verifier names any step whatever
    control=Ordering(relations=("told_any > blind by 0.03",)),
    reported=Ordering(relations=(f"told > blind in {SolvedWithin().name}", "told > no_subgoals")),
    seeds=tuple(range(380, 389)),
    tuning_seeds=(950, 951),
    grid={"learner.lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)},
    tuning={"iterations": 6},
    cost="iterations",
)

FINDING = (
    "Which step is wrong, told in words, is worth nothing here that nine seeds could show: 0.849 and 0.890 solved in three "
    "attempts (-0.042 [-0.135, 0.040]). Two runs of those that are told ended at 0.60 and 0.73 at a rate that served two tuning "
    "seeds; the others stand level. Most is solved in the first attempt (0.80 and 0.84), so little is left for a second one."
)
