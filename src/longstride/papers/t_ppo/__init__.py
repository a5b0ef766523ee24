"""T-PPO: PPO on answers that have not ended. Fan et al., 2025, arXiv 2506.15050.

Where an iteration waits for all of its answers, most sampling slots idle until the longest is done. So an iteration samples a window of each
answer; what is cut goes on in the next iteration, and a finished answer makes room for a new one. The policy learns from every window, whether
its answer has ended or not; the critic from finished answers alone.

| place | choice | paper | here |
|---|---|---|---|
| plan | `PartialRollouts` | a window of tokens; slots of those that ended are filled with new prompts | 40 of 160 tokens, 128 slots |
| credit | `ExtendedGAE` | V(s_l) = V(s_(l-1)) behind a cut | the same, lam 0.95, whitened over the batch |
| update | `PPO` | on the tokens of the window | the same, clip 0.2 |
| critic | `TokenValue` | its own model, Monte-Carlo returns of whole answers | a head on the policy's hidden states, the same |

`slot_steps` in `metrics.jsonl` is what an iteration takes where each answer has a slot of its own: the tokens of the longest times all that
are answered; claims may hold it equal.

`longstride train t_ppo` takes about 10 minutes of one core. On your own model and tasks of a single turn, a window a quarter of the whole:

    longstride train t_ppo model=Qwen/Qwen3-0.6B tasks.type=dataset tasks.path=sums.jsonl learner.lr=1e-6 \\
        budget.turn_tokens=4096 test_budget.turn_tokens=4096 sampler.tokens=1024

The claim is not frozen and has not been run.

Deviations: the abstract and notes were read; window, batch, rate and lam of the paper are not known. The critic reads the policy's hidden states and
moves nothing there, so nothing is gained by updating both apart. A whole answer that its budget cut is truncated: it goes on from its
last value as everywhere here, and the critic does not learn from it, where the paper lets it end. The local engine samples all slots side by side and gives a slot that is done to the next
answer at once, so wall time falls less than slot-steps.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Truncated Proximal Policy Optimization",
    authors="Tiantian Fan, Lingjun Liu, Yu Yue, Jiaze Chen, Chengyi Wang, Qiying Yu, Chi Zhang, Zhiqi Lin, Ruofei Zhu, Yufeng Yuan, Xiaochen Zuo, "
    "Bole Ma, Mofan Zhang, Gaohong Liu, Ru Zhang, Haotian Zhou, Cong Xie, Ruidong Zhu, Zhi Zhang, Xin Liu, Mingxuan Wang, Lin Yan, Yonghui Wu",
    year=2025,
    arxiv="2506.15050",
    read="notes",
    topics=("credit", "values", "systems"),
    systems=(105,),
)
