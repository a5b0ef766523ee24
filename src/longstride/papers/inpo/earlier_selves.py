"""Self-play against an earlier self: of each group of 8 answers the policy of up to five iterations ago gives four, and
the policy is rewarded for being preferred to these. `companions.earlier.follows` says which self:
`type=moving_average decay=0.9` is an average of all of them, of which recent ones weigh most.

What it is not good for: in a run of each, of 20 iterations, exploitability went from 0.24 over 0.33 to 0.28 and 0.29. The
policy beats its earlier self, and is beaten by another answer. The losses of `inpo` and `nash_mp` have a hold on the start
that it has not."""

from longstride.methods import PPO, GroupRelative, Latest, Mean
from longstride.papers.inpo import recipe
from longstride.rewards import AgainstRivals
from longstride.rollout import WithRivals
from longstride.run.recipe import Companion
from longstride.setups.duels import IN_TURN

RECIPE = recipe.RECIPE.replace(
    name="inpo/earlier_selves",
    sampler=WithRivals(companion="earlier", episodes=4),
    companions={
        "earlier": Companion(model=recipe.RECIPE.start, context=recipe.RECIPE.context, follows=Latest(every=5))
    },
    reward=AgainstRivals(preference=IN_TURN),
    credit=GroupRelative(normalize="none"),
    loss=PPO(aggregation=Mean(over="token")),
)
