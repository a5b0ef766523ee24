"""ArCHer: hierarchical multi-turn RL. Zhou et al., 2024, arXiv 2402.19446.

Over turns a critic learns off-policy, from the episodes of all iterations; within a turn the policy learns token by
token, with the critic's advantage as reward. So a turn is credited with what it did itself.

| place | choice | paper and release (Twenty Questions; GPT-2, RoBERTa) | here |
|---|---|---|---|
| plan | tasks uniform | 128 episodes an iteration, 20 questions | 512, 4 questions |
| score | `TaskReward` | -1 for each question that is not the right guess | 1 for the right guess |
| critic | `DoubleValue` | two Q, two V, an encoder of their own; discount 0.95, tau 0.1 | the same |
| critic | steps | 50 of 256 turns, 2e-5, clip 1; 20 iterations alone | 60 of about 95, 5e-4, clip 1; 4 alone |
| actions | `StateReplay` | a new one in each stored turn | 4 in each |
| credit | `TurnAdvantage` | Q less V; no baseline of tokens | Q less the mean Q of the 4 |
| update | `Reinforce` | 3 steps of 256 turns, 1e-6, clip 1 | 4 of 600 actions, 1e-4 |

Deviations: the baseline; actions are proposed once an iteration, not for every step; turns are drawn by episodes; a
truncated episode goes on from its last state; Q reads prompt and action together.
Fresh seed 5, 600 held-out games: 0.71 to 0.84 in 150 s of CPU; 0.86 with one proposal in each of 768 games; `REINFORCE`
0.87. In a place Q correlates with rollouts by 0.3 after 1500 episodes, 0.7 after 4600 (Q less V: 0.1, 0.4; seed 0). The
claim is not frozen and has not been run: at this rate 50 runs of tuning, 10 of its pilot and 50 of its own take three and
a half hours of one core.

On your own model and tasks of several turns; the encoder is of the model's tokenizer:

    longstride train archer model=Qwen/Qwen3-0.6B critic.encoder=Qwen/Qwen3-0.6B cloning= tasks.type=my_module:MyTasks \\
        budget.turns=20 budget.turn_tokens=256 test_budget.turns=20 test_budget.turn_tokens=256 learner.lr=1e-6 critic.lr=2e-5
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="ArCHer: Training Language Model Agents via Hierarchical Multi-Turn RL",
    authors="Yifei Zhou, Andrea Zanette, Jiayi Pan, Sergey Levine, Aviral Kumar",
    year=2024,
    arxiv="2402.19446",
    read="notes",
    topics=("agents", "credit", "values"),
    systems=(46,),
)
