"""RedStar: how far long traces go, by how many there are. Xu et al., 2025, arXiv 2501.11284.

A model that is fine-tuned on long traces, which try, check and try again, comes to reason slowly itself. A few thousand of them
are enough to set it off, success goes on rising with the logarithm of their number, and what they buy is on hard problems.

| place | choice | paper (7B to 32B; MATH, AIME, code) | here |
|---|---|---|---|
| traces | `PuzzleBehaviours` | sampled of a slow reasoner; right ones, hard problems preferred | written by a script; right ones |
| how many | `cloning.episodes` | 1k to 1,000k | 64 to 1,024 |
| update | `Cloning` | supervised fine-tuning | the same; in the claim as many steps whatever the number |
| beside | `behaviours` | short traces, a single attempt | the same |
| then | `iterations` | reinforcement learning (REINFORCE++, PPO) | GRPO, by settings |

`longstride train redstar` takes about a minute of one core. With traces of your own (docs/guides/traces.md), and the law of their number:

    longstride train redstar model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=tasks.jsonl cloning.episodes=256 \\
        cloning.demonstrations='{type="file_successes",path="traces.jsonl",unjudged=true}' cloning.learner.lr=1e-5 \\
        budget.turn_tokens=2048 test_budget.turn_tokens=2048
    longstride sweep redstar runs/redstar cloning.learner.epochs=10 cloning.learner.lr=1e-5 --grid cloning.episodes=64,256,1024

A sweep sees each trace as often, so more traces are more steps there. `iterations=40 learner.epochs=2 learner.lr=1e-6` goes on with
reinforcement learning. Sizes are an axis too; one of half the width is made in a quarter of an hour:

    longstride make-base puzzles model.width=48 --out half
    longstride sweep redstar runs/sizes cloning.learner.epochs=10 --grid model=half,base-puzzles --grid cloning.episodes=64,256,1024,4096

The claim, frozen before its eight seeds ran, is null. On hard tasks long traces are ahead of as many short ones by +.206 [.163, .246] (.44 and .23), as
was said; but on easy ones too, by +.204 [.168, .239], where they were not to be: with one attempt a model gets .72 of the puzzles of one operation, so there
is room for a second one. That the lead grows with the number of traces is open (+.030 [-.042, .100] from 64 to 1,024), and 1,024 long traces are ahead of 64
by +.088 [.028, .150] at a margin of .05. A thought after long traces takes 2.8 times the tokens; several short attempts within as many were not compared.

Deviations: the model is one of 0.4M parameters; that larger ones need fewer traces is not tested. The start knows arithmetic and
attempts that are given up early, as a model that was pretrained does. Traces are not chosen by difficulty. That a few thousand of
them are enough rests on what a model of 7B knows before, which no model of this size shows. Rates and lengths of the paper are not known.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="RedStar: Does Scaling Long-CoT Data Unlock Better Slow-Reasoning Systems?",
    authors="Haotian Xu, Xing Wu, Weinong Wang, Zhongzhi Li, Da Zheng, Boyuan Chen, Yi Hu, Shijia Kang, Jiaming Ji, Yingying Zhang, "
    "Zhijiang Guo, Yaodong Yang, Muhan Zhang, Debing Zhang",
    year=2025,
    arxiv="2501.11284",
    read="abstract",
    topics=("reasoning", "cloning", "scaling"),
    systems=(77,),
)
