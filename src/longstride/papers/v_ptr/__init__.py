"""V-PTR: values of walks without actions, before offline RL. Bhateja et al., 2023, arXiv 2309.13041.

Video has neither actions nor rewards, so no Q can be learned from it. Values of states can: V(s, g), how soon an agent that wants to can get from s to
g, by temporal differences toward what a walk reaches later. Offline RL on the few data with actions and rewards then begins with the features of states
that the network has learned for that.

| place | choice | paper | here |
|---|---|---|---|
| data | without actions | Ego4D, video of people | walks of the same maze, actions and rewards taken away |
| data | with actions | Bridge data of robots, then demonstrations of the task | further walks, one for twenty of the others |
| plan | phases | video, then robots' data, then the task | states (`learning=("value",)`), then actions (`learning=("critic",)`) |
| value | of states | ICVF: V(s, g, z) of outcomes g under intentions z, multilinear | V(s, g), the intention is the outcome (HIQL's, `TrunkV`), expectile 0.9 |
| value | of actions | CQL, as in PTR | that of `cql`, on the trunk (`TrunkQ`) |
| networks | what is shared | a ResNet-50 of images | two layers of state and goal, which go on learning |
| policy | | Gaussian, behind the same images | a network of its own |

`v_ptr/recorded` takes data of your own. The switch of what learns in a phase is `TrainingPhase.learning`, for any critics of an agent.

The claim, frozen before its 16 seeds ran, is null. With 5 to 18 labelled walks values of states are ahead by +.028 [-.079, .133] (.79 and .77,
margin .1): by the margin in 25 % of the worlds, and behind in 31 %. Where the fewest walks are labelled they lead by .13, where more are they are
behind by .16; with a fifth of the walks labelled both sides reach nearly all goals.

Deviations: there is no video and no robot, and walks without actions are of the same body as the others, which is the easier case. Of the paper its abstract
and what others wrote of it were read, and the released code of ICVF (dibyaghosh/icvf_release), whose loss this is but for intentions; code of V-PTR
itself was not found. In generated mazes the labelled walks are further ones, so where all are labelled the side with values of states has seen twice as many. There is no third phase: the data with actions are of the task.
"""

from longstride.papers.card import Paper

CARD = Paper(
    title="Robotic Offline RL from Internet Videos via Value-Function Pre-Training",
    authors="Chethan Bhateja, Derek Guo, Dibya Ghosh, Anikait Singh, Manan Tomar, Quan Vuong, Yevgen Chebotar, Sergey Levine, Aviral Kumar",
    year=2023,
    arxiv="2309.13041",
    read="notes",
    topics=("offline", "values", "robots"),
    systems=(30,),
)
