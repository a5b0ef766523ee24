"""DSRL: RL over the noise of a cloned diffusion or flow policy. Wagenmaker et al., 2025, arXiv 2506.15799.

A diffusion or flow policy makes an action of a state and of noise. DSRL leaves its weights alone and chooses the noise: the
policy is part of the world, whose action is the noise now, and any RL method can act there. Whatever is chosen, the action is
one that the cloned policy could have taken. Different noise may give the same action, and then has the same value (noise
aliasing). So Q is learned of actions, from any data,

    Q(s, a) toward r + gamma Q(s', flow(s', w')), w' chosen;   Q_w(s, w) toward Q(s, flow(s, w)), w ~ N(0, 1)

and the choice follows the gradient of Q_w, which needs none through the flow.

| place | choice | paper and released code (Gym) | here |
|---|---|---|---|
| plan | cloning, then online | DDPM of D4RL's, Robomimic's and robots' data | `PointMaze`, 60 noisy walks, then 60 episodes |
| policy | `SteeredFlow` | DDIM, 5 steps; chunks of 4 actions | a flow, 5 steps; single ones (`data.action`) |
| policy | noise within `bound` | 1.5 | 1.5 |
| value | `NoiseAliased`: two critics, the least of them | the same, by member | the same |
| value | the choice's entropy in the target | yes | no |
| policy | `LatentSAC`, entropy kept at its target | 0 a coordinate | 0 |
| update | of Q and the choice, then of Q_w | 20, then 10, every two steps | at once, 200 every ten episodes |
| update | Adam 3e-4, tau 0.005 | three layers of 128 with tanh | 1e-3, 0.02; two of 64, ReLU |
| roll out | the first episodes | noise of a normal distribution | chosen: after 400 updates on the walks |

Deviations: the critics learn from the walks first, and half of each batch is theirs after that (the paper's option to load
offline data); Q and Q_w take their steps together. DSRL without aliasing, SAC on stored noise, is not here, nor are
pre-trained robot policies. In its claim the flow alone goes on cloning its own episodes beside the walks. No run of the
recipe was looked at: what is tested is that steering finds a rare kind of action of a small problem's data. `dsrl/recorded`
clones and steers on data of others, without acting.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Steering Your Diffusion Policy with Latent Space Reinforcement Learning",
    authors="Andrew Wagenmaker, Mitsuhiko Nakamoto, Yunchu Zhang, Seohong Park, Waleed Yagoub, Anusha Nagabandi, Abhishek "
    "Gupta, Sergey Levine",
    year=2025,
    arxiv="2506.15799",
    read="notes",
    topics=("values", "robots", "cloning"),
    systems=(129,),
)
