"""Several speakers in one episode: the policy, and frozen other models."""

from collections.abc import Mapping

from longstride.core.errors import EngineFailure
from longstride.rollout.episode import Episode, Generation
from longstride.rollout.players import Player


class CompanionPlayer:
    """Asks whoever's turn it is. What another model says stands in the trajectory as given ids: it is read and never
    trained.

    Args:
        policy: plays whoever has no companion.
        companions: by speaker (`Observation.speaker`), or by the role of episodes that they play alone.
    """

    parts = 1

    def __init__(self, policy: Player, companions: Mapping[str, Player]) -> None:
        self.policy, self.companions = policy, dict(companions)

    def ask(self, episode: Episode) -> None:
        playing = self.companions.get(episode.plan.role) or self.companions.get(episode.speaker, self.policy)
        playing.ask(episode)

    def poll(self) -> list[tuple[Episode, Generation | EngineFailure]]:
        done = self.policy.poll()
        for companion in self.companions.values():
            done += [(episode, _given(outcome)) for episode, outcome in companion.poll()]
        return done

    def release(self, episode: Episode) -> None:
        for player in (self.policy, *self.companions.values()):
            player.release(episode)


def _given(outcome: Generation | EngineFailure) -> Generation | EngineFailure:
    """A generation of a model that is not trained."""
    if isinstance(outcome, EngineFailure):
        return outcome
    ids = outcome.prompt_ids + outcome.sampled_ids
    given = outcome.given + len(outcome.sampled_ids)
    usage = outcome.usage and outcome.usage._replace(sampled=0, beside=outcome.usage.sampled)
    return Generation(ids, [], [], [], outcome.text, outcome.finish, given, media=outcome.media, usage=usage)
