"""BoN-aware fine-tuning: RL for the best of N answers. Chow et al., 2024, arXiv 2412.15287.

If N answers are drawn and a verifier keeps the best, a task is solved with chance 1 - f^N, f the chance that one answer
fails. The gradient of that is N f^(N-1) times the gradient of the success of one answer: what is solved anyway weighs
nothing, and where the policy cannot know which answer is right it learns to try several instead of the likeliest.

| place | choice | paper (Gemma 2B and 9B, section 4) | here |
|---|---|---|---|
| plan | groups of one task | 32 answers | 32 answers to each task |
| score | a verifier | right or wrong | the same |
| credit | `PassAtN` | weights of right and wrong answers in f^(N-1), from the empirical f | N w (r - mean of the others), w exact in expectation |
| update | `Reinforce` | REINFORCE with a KL to the start | the same without KL, the sum over tokens |
| test | `pass@16` | best of N with an exact verifier, pass@N | computed from the policy |

Deviations: tasks are enumerable (`exact.answers`): sixteen, four to a context, which the policy cannot tell apart and
which have different right answers. The objective is 1 - f^N, not its logarithm, so the paper's weights divided by
1 - f^N do not occur. f^(N-1) is not the power of an estimate, which is biased: it is the share of sets of N - 1 of the
*other* answers that all fail, which is independent of the answer that is weighed. So the expected update is the exact
gradient (tested to 1e-9), for N up to the size of the group; the best of N by an imperfect verifier is left out.

On puzzles: `longstride train grpo credit.type=longstride.papers.bon_aware.method:PassAtN credit.n=4`.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Inference-Aware Fine-Tuning for Best-of-N Sampling in Large Language Models",
    authors="Yinlam Chow, Guy Tennenholtz, Izzeddin Gur, Vincent Zhuang, Bo Dai, Sridhar Thiagarajan, Craig Boutilier, "
    "Rishabh Agarwal, Aviral Kumar, Aleksandra Faust",
    year=2024,
    arxiv="2412.15287",
    read="notes",
    topics=("reasoning", "credit", "search"),
    systems=(8,),
)
