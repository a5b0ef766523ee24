"""J1: a judge whose verdicts gain by thinking on, once RL has taught it how. Chan et al., 2025, arXiv 2505.11875.

A judge is fine-tuned on thoughts with reflections, and then trained by RL on whether its verdict is right. At test time
the end of its thought is taken out and `wait` put in its place. After fine-tuning alone this gains little: the judge
learned to look again, and looks at what it has seen. A right verdict needs what was not seen yet, and RL pays for that.

| place | choice | paper (Qwen2.5-7B) | here |
|---|---|---|---|
| cold start | `teacher` | reflective thoughts, kept where the verdict is right | looks at lines, most of them again; kept likewise |
| score | verdict | right, and in form | right |
| update | `Reinforced` | REINFORCE++: advantages normalised over the batch, KL in the reward | the same; beta 0.01 |
| compared | `ThoughtTuned` | fine-tuning alone | on as many more thoughts as RL samples |
| test time | `waits` | the end of a thought is suppressed, up to k times | the same; then it may end, or go on up to the limit |
| measure | `gain` | slope of accuracy in k | accuracy with 4 waits less accuracy with none |

Two answers are compared of which one has a flaw, in one of `lines` lines. A look at a line that was not looked at sees
a flaw there with probability `sight`; a look at one that was sees nothing new. A judge that saw the flaw is right, any
other guesses. Accuracy is computed from the policy, exactly.

Deviations: a policy is a table: by looks so far (0, 1, 2 or more) how likely it is to look at a new line, to look
again, or to end. So beyond the longest thought of training it does what it did at its end: that this carries over to
longer thoughts is assumed here, and a language model has to earn it. The paper of Meta AI with the same name (arXiv
2505.10320), which rewards agreement in both orders, is another.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="J1: Exploring Simple Test-Time Scaling for LLM-as-a-Judge",
    authors="Chi-Min Chan, Chunpu Xu, Jiaming Ji, Zhen Ye, Pengcheng Wen, Chunyang Jiang, Yaodong Yang, Wei Xue, Sirui "
    "Han, Yike Guo",
    year=2025,
    arxiv="2505.11875",
    read="abstract",
    topics=("judges", "search"),
    systems=(100,),
)
