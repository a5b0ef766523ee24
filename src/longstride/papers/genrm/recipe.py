"""GenRM on solutions that a policy wrote: reasons are sampled, kept where their verdict fits the label, and learned.

On one's own: `longstride train genrm model=MODEL tasks.path=solutions.jsonl`, see docs/guides/judge.md.
"""

from longstride.envs.judgements import Judgements
from longstride.methods import FilteredBC
from longstride.methods.losses import Reinforce
from longstride.papers.genrm.method import Ranked, RightSolutions
from longstride.run.imitation import Imitation
from longstride.setups import puzzles
from longstride.strategies import Direct

RECIPE = puzzles.recipe(
    "genrm",
    credit=FilteredBC(),
    loss=Reinforce(),
    iterations=16,
    model="base-judge",
    tasks=Judgements(),
    imitation=Imitation(demonstrations=RightSolutions(), weight=0.1),
    learner={"lr": 1e-3},
    evaluation={"tasks": 480, "every": 8, "strategies": (Direct(), Ranked())},
)
