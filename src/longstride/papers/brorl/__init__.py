"""BroRL: hundreds of rollouts a prompt. Hu et al., 2025, arXiv 2510.01180.

An update raises what was sampled and right and lowers what was sampled and wrong; both raise the mass of right tokens.
What was *not* sampled moves with the normaliser: where the sampled tokens are right on the whole, likely right tokens
that were missed lose more than sampled ones gain. With enough rollouts nothing likely is missed. So a run that further
steps no longer improve is continued with more rollouts of each prompt.

| place | choice | paper (ProRL's 1.5B model after 3,000 steps) | here |
|---|---|---|---|
| start | `model` | a run that has stopped rising | the shipped one, or a run that you name |
| plan | `broadened`, rollouts a prompt | 512 for 16 | 512 for 16, 8 puzzles, as many in all |
| plan | groups | mixed ones alone, drawn until there are enough | `MixedGroups`, as drawn |
| credit, update | | ProRL's: GRPO with DAPO's clip, KL with resets | `GroupRelative`, `PPO` with clip 0.2 and 0.28, no KL |
| update | `broadened`, rate and batch | rate by the square root, as many steps an iteration on larger batches | the same |
| analysis | `DistinctMass` | one step on logits for the distinct tokens that were sampled | the same for distinct answers, as a credit |

The equation of the analysis, with A and B the sampled right and wrong tokens, U the unsampled ones, x_2 the sum of
squared probabilities over x, Q the mass of all right or wrong tokens, and S_R = R_c P(A) + R_w P(B):

    dQ_right = (eta / N) [(R_c - S_R) Q_wrong A_2 + (S_R - R_w) Q_right B_2
                          + S_R (Q_right U_wrong2 - Q_wrong U_right2)]

Deviations: the recipe has as many rollouts in all, where the paper has more of them; the claim has as many updates, as
the paper does. Of the paper the abstract and notes of others were read; its table of results was not found. Not shown:
that a saturated language model improves again; the claim begins from the shipped start, which still rises.

On your own model, from the last checkpoint of a run that has stopped rising:

    longstride train grpo iterations=200
    longstride train brorl model=runs/grpo-1/checkpoints/000200 iterations=8
    longstride train brorl model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=sums.jsonl group_size=512 \\
        learner.lr=6e-6 learner.batch_samples=1024 budget.turn_tokens=1024 test_budget.turn_tokens=1024

From Python any recipe is broadened: `broadened(papers.load("grpo"), 64)`, of `longstride.papers.brorl.method`.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="BroRL: Scaling Reinforcement Learning via Broadened Exploration",
    authors="Jian Hu, Mingjie Liu, Ximing Lu, Fang Wu, Zaid Harchaoui, Shizhe Diao, Yejin Choi, Pavlo Molchanov, Jun "
    "Yang, Jan Kautz, Yi Dong",
    year=2025,
    arxiv="2510.01180",
    read="notes",
    topics=("reasoning", "scaling"),
    systems=(82,),
)
