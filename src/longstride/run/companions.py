"""The companions of a recipe, opened. What always holds: they read the policy's tokens, so they have its vocabulary."""

from longstride.core.errors import ModelError
from longstride.engines.config import Local
from longstride.models.load import Policy, load_policy
from longstride.rollout.players import LanguagePlayer, Player
from longstride.run.recipe import Recipe


def started(policy: Policy, recipe: Recipe) -> dict[str, Player]:
    """See `run.evaluation.companion_players`."""
    players: dict[str, Player] = {}
    config = recipe.engine if isinstance(recipe.engine, Local) else Local()
    for name, companion in recipe.companions.items():
        other = load_policy(companion.model, companion.chat, policy.device)
        if other.tokenizer.get_vocab() != policy.tokenizer.get_vocab():
            raise ModelError(
                f"companions.{name}: {companion.model!r} has another vocabulary than {recipe.model!r}, and each reads "
                "the tokens of the other; choose models of one tokenizer"
            )
        engine = config.make(other, 0, [companion.sampling])
        players[name] = LanguagePlayer(engine, other.chat, companion.context, companion.sampling)
    return players
