"""J1: a judge whose verdicts gain by thinking on, once RL has taught it how. Chan et al., 2025, arXiv 2505.11875.

A judge is fine-tuned on thoughts with reflections, and then trained by RL on whether its verdict is right. At test time
the end of its thought is taken out and `wait` put in its place. After fine-tuning alone this gains little: the judge
learned to look again, and looks at what it has seen. A right verdict needs what was not seen yet, and RL pays for that.

| place | choice | paper (Qwen2.5-7B) | here |
|---|---|---|---|
| tasks | `Judgements(asks="better")` | pairs of answers | pairs of solutions that `base-puzzles` wrote, or of any model or file |
| cold start | `base-judge`; `cloning` of known reasons | reflective thoughts, kept where the verdict is right | a judge that reads lines and stops too early |
| score | the verdict | right, and in form | right; a reply out of form has no verdict |
| credit | `GroupRelative` over the batch | REINFORCE++: advantages normalised over the batch, KL in the reward | normalised likewise; KL in the loss, 0.01 |
| compared | `FilteredBC` | fine-tuning alone | on as many own judgements |
| test time | `ThinkOn(end="Verdict:")` | the end of a thought is suppressed, `wait` put in its place | likewise; the shipped judge goes on after `;` |
| measure | `BothOrders` | | also whether a verdict holds in both orders (as in arXiv 2505.10320) |

With your own: `longstride train j1 model=MODEL tasks.path=solutions.jsonl` (docs/guides/judge.md).

`exact.py` has the mechanism in small, where accuracy is computed from the policy. Two answers are compared of which one has a flaw, in one of `lines` lines. A look at a line that was not looked at sees
a flaw there with probability `sight`; a look at one that was sees nothing new. A judge that saw the flaw is right, any
other guesses. Accuracy is computed from the policy, exactly.

Deviations: verdicts in both orders are measured and not rewarded. In `exact.py` a policy is a table: by looks so far (0, 1, 2 or more) how likely it is to look at a new line, to look
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
