"""The pool: plays many episodes together, one turn of all of them at a time.

What always holds, whatever the latencies: every plan yields exactly one trajectory, and they come back in the order
of the plans; nothing is dropped for being slow; admission is by ordinal, oldest first, as soon as a place is free; an
episode's content does not depend on how many play beside it. A failed episode is tried again under the same plan
before it is reported as failed. Every environment is closed and every session released, on errors and on Ctrl-C too.

What it does not do: end an environment that blocks the thread (it would have to run in a process of its own).
"""

import heapq
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from longstride.core.errors import ConfigError, EngineFailure
from longstride.core.trajectory import Trajectory
from longstride.engines.base import Engine, Request, Sampling
from longstride.envs.base import Env
from longstride.rollout.context import ContextPolicy
from longstride.rollout.driver import Driver
from longstride.rollout.episode import Episode, Judge, Plan, Said

if TYPE_CHECKING:  # the tokenizers behind it take seconds to import
    from longstride.models.chat import ChatFormat


class Player(Protocol):
    """Who says what is done."""

    def act(self, episodes: Sequence[Episode]) -> list[Said]:
        """What is said in each episode, in their order.

        Raises:
            EngineFailure: infrastructure trouble; all of these episodes failed.
        """
        ...

    def release(self, episode: Episode) -> None:
        """Forgets what is kept for an episode that is over."""
        ...


class LanguagePlayer:
    """A language model: a context policy makes the prompt, an engine continues it."""

    def __init__(self, engine: Engine, chat: "ChatFormat", context: ContextPolicy, sampling: Sampling) -> None:
        self.engine = engine
        self.chat = chat
        self.context = context
        self.sampling = sampling

    def act(self, episodes: Sequence[Episode]) -> list[Said]:
        requests = [
            Request(
                prompt=self.context.render(self.chat, e.goal, e.observations, e.sampled),
                max_new=e.max_new,
                seed=e.turn_seed,
                session=e.session,
                sampling=self.sampling,
            )
            for e in episodes
        ]
        return [
            Said(request.prompt, c.ids, c.logprobs, c.versions, self.chat.decode(c.ids), c.finish)
            for request, c in zip(requests, self.engine.generate(requests), strict=True)
        ]

    def release(self, episode: Episode) -> None:
        self.engine.release(episode.session)


class ScriptedPlayer:
    """A function of the episode: demonstrators and baselines. Nothing is sampled, so nothing of it can be trained."""

    def __init__(self, choose: Callable[[Episode], str]) -> None:
        self.choose = choose

    def act(self, episodes: Sequence[Episode]) -> list[Said]:
        return [Said([], [], [], [], self.choose(e)) for e in episodes]

    def release(self, episode: Episode) -> None:
        """Nothing is kept."""


class Pool:
    """Plays plans.

    Args:
        player: says what is done.
        make_env: makes the environment of one episode.
        reward: judges an episode that ended.
        batch: episodes that are live at once, at least 1.
        step_deadline: seconds that environments and judges have for one turn; who is late is named, and failed.
        retries: how often a failed episode is tried again.
    """

    def __init__(
        self,
        player: Player,
        make_env: Callable[[], Env],
        reward: Judge,
        batch: int = 512,
        step_deadline: float = 60.0,
        retries: int = 1,
    ) -> None:
        if batch < 1:
            raise ConfigError(f"a pool plays at least 1 episode at once, got batch {batch}")
        self.player = player
        self.make_env = make_env
        self.reward = reward
        self.batch = batch
        self.step_deadline = step_deadline
        self.retries = retries

    def run(self, plans: Sequence[Plan], progress: Callable[[int, int], None] | None = None) -> list[Trajectory]:
        """Plays all plans.

        Args:
            plans: what is played; admitted by ordinal.
            progress: called with (plans done, plans) whenever episodes have ended.

        Returns:
            One trajectory a plan, in the order of `plans`.
        """
        waiting = [(plan.ordinal, i) for i, plan in enumerate(plans)]
        heapq.heapify(waiting)
        tries = [0] * len(plans)
        live: dict[int, Episode] = {}
        done: dict[int, Trajectory] = {}
        with Driver(self.step_deadline) as driver:
            try:
                while waiting or live:
                    fresh = []
                    while waiting and len(live) < self.batch:
                        i = heapq.heappop(waiting)[1]
                        live[i] = Episode(plans[i], self.make_env())
                        fresh.append(live[i])
                    self._drive(driver, fresh, [e.start() for e in fresh])
                    self._turn(driver, [e for e in live.values() if not e.ended])
                    ended = {i: e for i, e in live.items() if e.ended}
                    self._leave(driver, list(ended.values()))
                    for i, episode in ended.items():
                        del live[i]
                        tries[i] += 1
                        if episode.trajectory.stop.failed and tries[i] <= self.retries:
                            heapq.heappush(waiting, (plans[i].ordinal, i))
                        else:
                            done[i] = episode.trajectory
                    if ended and progress is not None:
                        progress(len(done), len(plans))
            finally:
                driver.cancel()
                self._leave(driver, list(live.values()))
        return [done[i] for i in range(len(plans))]

    def _turn(self, driver: Driver, episodes: list[Episode]) -> None:
        if not episodes:
            return
        try:
            said = self.player.act(episodes)
        except EngineFailure as e:
            for episode in episodes:
                episode.fail(f"engine: {e}")
        else:
            turns = zip(episodes, said, strict=True)
            self._drive(driver, episodes, [e.take(s, self.reward) for e, s in turns])

    def _drive(self, driver: Driver, episodes: list[Episode], coroutines: list[Coroutine[Any, Any, None]]) -> None:
        for episode, stuck in zip(episodes, driver.run(coroutines), strict=True):
            if stuck:
                episode.fail(f"environment and judge did not finish within {self.step_deadline:g} s", where=stuck)

    def _leave(self, driver: Driver, episodes: list[Episode]) -> None:
        driver.run([e.close() for e in episodes])
        for episode in episodes:
            self.player.release(episode)
