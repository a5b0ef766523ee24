"""LOOP: leave-one-out PPO for long episodes. Chen et al., 2025, arXiv 2502.01600.

PPO without a critic, in which rollouts are used for several steps. What is clipped matters then: the ratio of a whole
trajectory is the product over its tokens, leaves the clip range after a small step and loses its gradient; ratios of
single tokens stay inside.

| place | choice | paper and released code (Qwen2.5-32B on AppWorld) | here |
|---|---|---|---|
| plan | groups of one task | 6 rollouts, 40 tasks, 40 turns | the same, 24 turns, on the embedded sites |
| score | the final state | share of unit tests that pass | right or wrong |
| credit | `DeadZone` | r - mean of the others, not divided; none below 0.01 | the same |
| update | `PPO` | token by token, ratio clipped to [1 / 1.1, 1.1]; no KL | the same |
| update | `Mean` | over a rollout's tokens, then over rollouts | over all tokens |
| update | steps | 2 epochs of batches of 32 rollouts | 2 of 192 turns |

Deviations: the claim has tasks of one turn, for its seeds are cheap there; all weights are trained, not adapters;
gradients are clipped at 1, not 0.1; no rule for stragglers (the paper stops when nine tenths of the rollouts are
done, which favours short ones). The release takes rollouts below 0.01 out of the batch, but for as many as fill it
up; here they stay in its denominators with an advantage of 0. The ratio that it is held against, `TrajectoryPPO`, is
of a whole turn: a sample is a turn here.

An earlier form of the claim (`results/half_tuned.json`, 20 seeds) had a lead of .117 [.085, .152] after four passes, and
.011 and .012 after one and two. It shows nothing of the ratios: its rates were tuned on half as many iterations. There the
ratio of whole turns is best at 1e-3 (.596, and .568 at 3e-4), with which it stalls in the second half of a whole run (.534).
At 3e-4, the rate of the token's ratio, it ended whole runs on the two tuning seeds at .673 and .671, where the token's ratio
came to .650 on the claim's seeds. The claim now tunes whole runs, on other seeds, and has not been run.

On your own model and environment, a tool environment too, whose tools the chat template of the model presents:

    longstride train loop model=Qwen/Qwen3-4B learner.lora.rank=16 learner.lr=1e-5 actions=tool_calls \\
        tasks.type=mcp tasks.command='["python", "server.py"]' tasks.tasks.type=dataset tasks.tasks.path=questions.jsonl
    longstride train loop loss.type=longstride.papers.loop.method:TrajectoryPPO learner.epochs=4

The dead zone is for rewards with parts, such as the share of checks that pass: of 0 and 1 no advantage is small.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Reinforcement Learning for Long-Horizon Interactive LLM Agents",
    authors="Kevin Chen, Marco Cusumano-Towner, Brody Huval, Aleksei Petrenko, Jackson Hamburger, Vladlen Koltun, Philipp "
    "Krähenbühl",
    year=2025,
    arxiv="2502.01600",
    read="notes",
    topics=("agents", "credit", "tools"),
    systems=(92,),
)
