"""Four behaviours that let reinforcement learning improve a reasoner. Gandhi et al., 2025, arXiv 2503.01307.

Two models of one size are trained alike, and one goes on improving while the other stops. What differs is what they do in a
thought before training: verify, backtrack, set subgoals, chain backward from the goal. A model without these that is first
fine-tuned on a thousand traces which show them improves as well, also where every one of these traces ends in a wrong answer. As
many tokens that say nothing do not help.

| place | choice | paper and released code (Llama 3.2 3B, Countdown) | here |
|---|---|---|---|
| start | `PuzzleBehaviours` | 1,000 traces by Claude 3.5 Sonnet, told which behaviours to show | 1,000 by a script, three of the four |
| start | other traces | wrong answers alone; an empty thought; dots, as many as tokens | `answers`, `thought` |
| start | `Cloning` | 5 passes, batches of 64 | 2 passes, batches of 64 |
| RL | `GroupRelative`, `PPO` | PPO with a critic, 4 trajectories a prompt, 250 steps | 8 a group, 16 iterations |
| score | `TaskReward` | 1 if right, 0.1 for the format | 1 if right |
| measure | `WordsSaid` | a language model counts behaviours | words are counted |

`longstride train cognitive_behaviours` takes about 3 minutes of one core. With traces of your own, as rows of `prompt` and `completion`
(docs/guides/traces.md), and the words that show a behaviour there:

    longstride train cognitive_behaviours model=MODEL tasks.type=dataset tasks.path=tasks.jsonl \\
        cloning.demonstrations='{type="file_successes",path="traces.jsonl",unjudged=true}' cloning.learner.lr=1e-5 \\
        learner.lr=1e-6 budget.turn_tokens=1024 test_budget.turn_tokens=1024 \\
        evaluation.measures='[{type="longstride.papers.cognitive_behaviours.method:WordsSaid",words=["wait","try again"]}]'

`demonstrators.behaviours=["verification","backtracking"]` shows some of them, none of them is a single attempt; `longstride
make-base start=base-puzzles demonstrators.type=puzzle_behaviours` makes a start of it. `cognitive_behaviours/published` has the
settings of the paper's own size.

The claim is not frozen and has not been run. In the one run of 10 iterations that was looked at, wrong solutions came from 0.10 to 0.14,
filler from 0.02 to 0.01, single right attempts from 0.15 to 0.17, and right solutions from 0.43 to 0.38: the paper's equality of right and
wrong ones was not seen in so short a training.

Deviations: the model is `base-puzzles`, which has seen verification, backtracking and subgoals and gives up early: priming makes it
patient, and traces without a thought take all of it away. Backward chaining it has never seen, and 1,000 traces of it were learned
so badly (success 0.10 where the other three came to 0.43) that the recipe leaves it out; the first row's four are a setting. The
paper's other part, behaviours in what a model is pretrained on, is not here.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Cognitive Behaviors that Enable Self-Improving Reasoners, or, Four Habits of Highly Effective STaRs",
    authors="Kanishk Gandhi, Ayush Chakravarthy, Anikait Singh, Nathan Lile, Noah D. Goodman",
    year=2025,
    arxiv="2503.01307",
    read="notes",
    topics=("reasoning", "cloning"),
    systems=(104,),
)
