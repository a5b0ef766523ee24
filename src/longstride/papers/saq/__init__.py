"""SAQ: offline RL on quantised actions. Luo et al., 2023, arXiv 2310.11731.

With discrete actions, what keeps offline RL near its data can be computed exactly: CQL's sum over all actions, IQL's weights,
a divergence to the policy that collected the data. With real-valued actions it has to be sampled, and the number of bins grows
exponentially with the coordinates. SAQ learns a code: a VQ-VAE of actions given the state, so that some dozen codes stand in
each state for what the data do there. The codes then stay, and any method for discrete actions learns and acts with them.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan | data | D4RL's kitchen and hands, Robomimic | `PointMaze`, 400 walks |
| actions | `VQCodes` in `Level.codes` | 64 codes of 128 numbers, two layers of 512 | 16 of 8, two of 64 |
| actions | loss | squared error, commitment 1, codebook 1 | the same |
| actions | learned before all else | 500k updates | 1,000, in a phase that clones |
| actions | how likely a code is in a state | a third network | the policy, which is cloned (`CategoricalPolicy`) |
| value | double DQN and `gap`, CQL's term summed exactly | weight 10 to 30, decay of weights 1e-3 | 0.3, none |
| value | target network | taken over every 200 updates | moved by 0.02 |
| policy | `Greedy`: the code with the greatest value | of those that are likely enough, if wanted | of all |
| update | Adam 3e-4 | 1M updates | 1e-3, 128, 2,000 |

`saq/implicit` has IQL in place of CQL; its policy imitates codes by their advantage, where the released code draws them by value
and likelihood.

Deviations: SAQ-BRAC and the threshold of likelihood are not here; codes are held to numbers by hand alone. Codes that nothing is
near to are not revived, so of very few codes one may take all. No run of the recipe was looked at. `codes` go with any level
whose actions are real-valued and whose policy is discrete, online too. `saq/recorded` takes data of others.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Action-Quantized Offline Reinforcement Learning for Robotic Skill Learning",
    authors="Jianlan Luo, Perry Dong, Jeffrey Wu, Aviral Kumar, Xinyang Geng, Sergey Levine",
    year=2023,
    arxiv="2310.11731",
    read="notes",
    topics=("offline", "values", "robots"),
    systems=(37,),
)
