"""BoN-aware fine-tuning: RL for the best of N answers. Chow et al., 2024, arXiv 2412.15287.

If N answers are drawn and a verifier keeps the best, a task is solved with chance 1 - f^N, f the chance that one answer
fails. The gradient of that is N f^(N-1) times the gradient of the success of one answer: what is solved anyway weighs
nothing, and where the policy cannot know which answer is right it learns to try several instead of the likeliest.

| place | choice | paper (Gemma 2B and 9B, section 4) | here |
|---|---|---|---|
| plan | groups of one task | 32 answers | 32 answers, 8 puzzles |
| score | a verifier | right or wrong | the same |
| credit | `PassAtN` | weights of right and wrong answers in f^(N-1), from the empirical f | N w (r - mean of the others), N 16 |
| update | `Reinforce`, `KL` | REINFORCE with a KL to the start | the same, 0.001; one step an iteration |
| test | `pass@16` | best of N with an exact verifier, pass@N | 16 answers to each held-out puzzle |

Deviations: the objective is 1 - f^N, not its logarithm, so the paper's weights divided by 1 - f^N do not occur. f^(N-1)
is not the power of an estimate, which is biased: it is the share of sets of N - 1 of the *other* answers that all fail,
which is independent of the answer that is weighed. So the expected update is the exact gradient (tested to 1e-9), for N
up to the size of the group; the best of N by an imperfect verifier is left out, and so is fine-tuning on what the best
of N says.

On your own model and tasks, which need a verifier alone, trained for as many answers as you will draw:

    longstride train bon_aware model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=sums.jsonl credit.n=8 group_size=16 \\
        learner.lr=1e-6 budget.turn_tokens=1024 test_budget.turn_tokens=1024
    longstride eval runs/bon_aware-1 --strategy best_of attempts=8 by.type=verifier

A group has N answers or more; twice as many weigh with less noise. `credit.n=1` is leave-one-out.
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
