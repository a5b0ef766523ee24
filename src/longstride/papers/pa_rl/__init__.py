"""PA-RL: offline and online RL of policies of any class. Sobol Mark et al., 2024, arXiv 2412.06685.

How a policy is improved usually depends on its class: SAC needs a Gaussian, and gradients through the steps of a diffusion
or the tokens of a transformer are unstable, or there are none. PA-RL leaves the gradient of the critic to the *actions*. In
each state it draws several from the policy, keeps the best by the critic, and moves those up the critic's slope for some
steps; the policy imitates what came out, by the loss that it is cloned with. An improved action is what is done, too, and
what the critic takes in the next state.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan | cloning, then offline RL; online in the paper too | D4RL, CALVIN, robots | `PointMaze`, 60 noisy walks |
| roll out | none: offline | | five test tasks, 10 episodes each |
| policy | any with real-valued actions | DDPM, a transformer of tokens, OpenVLA | `FlowPolicy`; Gaussian, bins: `policy.type` |
| policy | `ActionSearch`: draw, keep, climb | 32, 10, 10 steps of 3e-4 | 8, 4, 3 steps of 0.01 |
| policy | the data's action in place of the worst kept | in training | the same |
| policy | what is imitated | drawn by the softmax of the values | the same, values over 0.1 |
| value | `SearchedTD`: Cal-QL on improved actions | alpha 0.005, no importance weights | 0.05, the same |
| value | head, ensemble | 128 bins from -100 to 0; ten, two a target | 51 bins from -10 to 10; two, their mean |
| update | Adam 3e-4 (policy 5e-5 after cloning) | batch 256, 1M updates offline | 1e-3, 64, 600 of cloning and 1,000 |

Deviations: the policy imitates improved actions from the first offline update on, which the released code leaves to online
training; a rate serves cloning and RL. Values go to 10 and not to -100, so steps and temperature are for slopes a tenth as
steep. Values begin at 0: those of a histogram from 0 to 10 began at 5, and seed 900 reached no goal with them in 400 updates; no
run with the settings as they are was looked at. The policy is small: what the paper shows of pre-trained robot policies is not
here. `pa_rl/recorded` has the paper's search for data of others; any level with
`extraction.type="longstride.papers.pa_rl.method:Optimised"` goes online as well.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Policy Agnostic RL: Offline RL and Online RL Fine-Tuning of Any Class and Backbone",
    authors="Max Sobol Mark, Tian Gao, Georgia Gabriela Sampaio, Mohan Kumar Srirama, Archit Sharma, Chelsea Finn, Aviral "
    "Kumar",
    year=2024,
    arxiv="2412.06685",
    read="notes",
    topics=("offline", "values", "robots"),
    systems=(10,),
)
