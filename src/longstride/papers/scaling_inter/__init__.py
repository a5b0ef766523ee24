"""ScalingInter-RL: GRPO under a horizon that grows in stages. Xi et al., 2025, arXiv 2509.08755.

First few turns, to learn to use what is known; then more, to explore. At many turns from the start training is reported to collapse after
a fast beginning, at few it stays where they end.

| place | choice | paper and released scripts | here |
|---|---|---|---|
| plan | groups of one task | 8 episodes (4 on WebArena), 32 tasks | 8, 32 |
| plan | `StepSchedule` | WebArena 8, 12, 15 turns, every 80 updates; BabyAI 6, 13, 20, every 100 | 8, 16, 24, every 8; tests at 24 |
| roll out | sampling | temperature 1, 512 tokens a turn | temperature 1 |
| score | `TaskReward` | the environment's | programmatic, exact |
| credit | `GroupRelative` | (r - mean) / std over the group | the same |
| update | `PPO` | clip 0.2, mean over tokens, KL 1e-3 to the start | the same |
| update | passes, rate | minibatches of 8 prompts, 2 epochs, 1e-6 | 2 epochs in 4 minibatches and more, 3e-4 |

Deviations: a model of half a million parameters on embedded sites. The rate was chosen of 3e-4, 5e-4 and 1e-3 by held-out success: at
5e-4 and above ever more actions become invalid after some 10 to 20 iterations, and what was won is lost.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="AgentGym-RL: Training LLM Agents for Long-Horizon Decision Making through Multi-Turn Reinforcement Learning",
    authors="Zhiheng Xi, Jixuan Huang, Chenyang Liao, Baodai Huang, Honglin Guo, Jiaqi Liu, Rui Zheng, Junjie Ye, "
    "Jiazheng Zhang, Wenxiang Chen, Wei He, Yiwen Ding, Guanyu Li, Zehui Chen, Zhengyin Du, Xuesong Yao, Yufei "
    "Xu, Jiecao Chen, Tao Gui, Zuxuan Wu, Qi Zhang, Xuanjing Huang, Yu-Gang Jiang",
    year=2025,
    arxiv="2509.08755",
    read="notes",
    topics=("agents", "horizon"),
    systems=(63,),
)
