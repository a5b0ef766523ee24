"""BFS-Prover from the first model again, on what a run that has stopped rising finds: its policy searches training tasks
once more, the start is trained on the steps in the middle, and expert iteration goes on from there.

    longstride train bfs_prover/restart cloning.demonstrations.model=runs/bfs_prover-1
"""

from longstride.papers.bfs_prover import recipe
from longstride.papers.bfs_prover.recipe import HIGH, LOW, SEARCH
from longstride.run.filters import Novel, PerplexityBand
from longstride.run.imitation import Cloning, StrategySuccesses

RECIPE = recipe.RECIPE.replace(
    name="bfs_prover/restart",
    cloning=Cloning(
        demonstrations=StrategySuccesses(
            strategy=SEARCH, filters=(Novel(), PerplexityBand(low=LOW, high=HIGH)), model="runs/bfs_prover-1"
        ),
        episodes=1200,
    ),
)
"""As many searches as twelve iterations make."""
