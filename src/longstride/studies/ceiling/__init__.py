"""The ceiling of `tti`: what its model reaches when it imitates a solver that makes no mistake.

Reinforcement learning on the embedded sites ends somewhere below 1. How much of that is the method, and how much could this model not learn at
all? Here the network, its words and its start are those of `tti`, and instead of learning from its own episodes it imitates a scripted solver
on the templates and sites of training. What it then reaches on held-out tasks bounds what any method should be asked for. An errand whose
success stays low here cannot be learned by this model, whatever the method.

| place | choice |
|---|---|
| start | that of `tti`, `base-wander` |
| cloning | 6,000 episodes of a solver that never slips, wanders or gives up; three times the rate of its base model |
| plan, roll out, reward, credit, update | as in `tti`, with no update: one small iteration is played and nothing is trained |
| test | the held-out tasks of `tti`, success by errand beside |
"""

from longstride.papers.card import Study

CARD = Study(title="The ceiling of TTI's tasks: a solver that makes no mistake, imitated", topics=("agents", "cloning"))
