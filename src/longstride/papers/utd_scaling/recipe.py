"""An actor-critic whose updates to a step are swept, in any Gymnasium environment whose actions are a box.

```sh
longstride sweep utd_scaling runs/utd --grid phases.0.utd=0.25,0.5,1,2 --grid agent.batch=64,128,256 \\
  --grid agent.critic_lr=3e-4,1e-3,3e-3 --seeds 4
longstride fit runs/utd --law power --x phases.0.utd --y env_steps --reach return=-400 --best agent.batch \\
  --best agent.critic_lr --until 1
longstride fit runs/utd --law rising_power --x phases.0.utd --y agent.batch --reach return=-400 --best agent.batch \\
  --best agent.critic_lr
```

The first fit is data by updates, at the batch and the rate that are best for each ratio, with the largest ratio held out; the
second is the best batch by the ratio (`--y agent.critic_lr`: the best rate). Seeds are trained side by side. Of the first,
`longstride.scaling.cheapest` says which ratio costs least at given prices of data and compute.
"""

from longstride.control import SAC, GaussianPolicy
from longstride.setups import pendulum

RECIPE = pendulum.recipe(
    "utd_scaling", pendulum.CRITIC, GaussianPolicy(trunk=pendulum.TRUNK), SAC(temperature=0.1)
).replace(phases=({"iterations": 20, "episodes": 1, "utd": 0.5},))
