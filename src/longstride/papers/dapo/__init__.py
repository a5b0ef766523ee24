"""DAPO: decoupled clip and dynamic sampling. Yu et al., 2025, arXiv 2503.14476.

GRPO for long thoughts: groups that are all right or all wrong teach nothing, so others are sampled until the batch is
full; a clip that is wider above leaves unlikely tokens room to grow; every token counts the same; an answer that the
limit cut says nothing about its thought and is left out, and one that comes near the limit is punished a little more with
every token.

| place | choice | paper (Qwen2.5-32B, section 4.1) | here |
|---|---|---|---|
| plan | `DynamicSampling` | 16 answers a prompt, until 512 groups are mixed | 8, until 32 are, 4 stages at most |
| roll out | sampling | temperature 1 (verl's recipe), 20,480 tokens | temperature 1, 160 tokens |
| score | `SoftOverlong` | 1 or -1, less a penalty that rises to 1 over the last 4,096 tokens (equation 13) | the same, over the last 32 |
| credit | `MixedGroups` | groups of which some answers are right and some wrong (section 3.2) | the same |
| credit | `OverlongFiltered` | (r - mean) / deviation; the loss of cut answers is masked (section 3.4) | the same |
| update | `PPO`, `Mean` over tokens | clip 0.2 and 0.28, no KL | the same |
| update | steps, rate | 16 an iteration, 1e-6 | two passes in steps of 128 episodes, 3e-4 |

Deviations: the setup is `setups.puzzles`, with a model of half a million parameters; all that was sampled is stored and
counted, also what teaches nothing. Where an episode has several turns, each has its own limit. The paper
adds the penalty on top of the filter (table 1), and so does this.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="DAPO: An Open-Source LLM Reinforcement Learning System at Scale",
    authors="Qiying Yu, Zheng Zhang, Ruofei Zhu, Yufeng Yuan, Xiaochen Zuo, Yu Yue, Tiantian Fan, Gaohong Liu, Lingjun "
    "Liu, Xin Liu, Haibin Lin, Zhiqi Lin, Bole Ma, Guangming Sheng, Yuxuan Tong, Chi Zhang, Mofan Zhang, Wang "
    "Zhang, Hang Zhu, Jinhua Zhu, Jiaze Chen, Jiangjie Chen, Chengyi Wang, Hongli Yu, Weinan Dai, Yuxuan Song, "
    "Xiangpeng Wei, Hao Zhou, Jingjing Liu, Wei-Ying Ma, Ya-Qin Zhang, Lin Yan, Mu Qiao, Yonghui Wu, Mingxuan "
    "Wang",
    year=2025,
    arxiv="2503.14476",
    read="full",
    topics=("reasoning", "credit", "systems"),
)
