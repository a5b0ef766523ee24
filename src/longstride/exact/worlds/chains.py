"""Decision problems with a plan to them: tunnels and lanes of `EnumerableMDP`, episodes sampled all at once, and a
diffusion whose value is known.

What always holds: a state that ends an episode has no reward and no way out; `simulate` draws from the problem, and all
else is computed. NumPy only.
"""

from dataclasses import dataclass

import numpy as np

from longstride.exact.worlds.tabular import EnumerableMDP


@dataclass(frozen=True, eq=False)
class Walks:
    """Episodes that were sampled, all padded to the horizon with the state that they ended in."""

    states: np.ndarray
    """[N, H + 1]."""
    actions: np.ndarray
    """[N, H]; of no meaning after the end."""
    rewards: np.ndarray
    """[N, H]; 0 after the end."""
    alive: np.ndarray
    """[N, H] whether the episode was still going on when the action was taken."""


def simulate(problem: EnumerableMDP, policy: np.ndarray, episodes: int, rng: np.random.Generator) -> Walks:
    """Independent episodes of a policy [S, A] of probabilities, all at once."""
    n, horizon = episodes, problem.horizon
    states = np.empty((n, horizon + 1), int)
    actions = np.empty((n, horizon), int)
    choose, move = policy.cumsum(1), problem.transitions.cumsum(2)
    states[:, 0] = draw(np.broadcast_to(problem.start.cumsum(), (n, len(problem.start))), rng)
    for t in range(horizon):
        s = states[:, t]
        actions[:, t] = draw(choose[s], rng)
        states[:, t + 1] = np.where(problem.terminal[s], s, draw(move[s, actions[:, t]], rng))
    alive = ~problem.terminal[states[:, :-1]]
    return Walks(states, actions, np.where(alive, problem.rewards[states[:, :-1], actions], 0.0), alive)


def draw(cumulated: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """[N] categories drawn from cumulated probabilities [N, K]."""
    u = rng.random((len(cumulated), 1)) * cumulated[:, -1:]
    return (cumulated <= u).sum(1)


def greedy(values: np.ndarray) -> np.ndarray:
    """[..., A] probabilities: uniform over the actions with the highest value [..., A]."""
    best = values >= values.max(-1, keepdims=True) - 1e-12
    return best / best.sum(-1, keepdims=True)


def value_of(problem: EnumerableMDP, policy: np.ndarray) -> float:
    """The exact expected return of a policy [S, A] of probabilities."""
    with np.errstate(divide="ignore"):
        return problem.expected_return(np.log(policy))


def optimal_value(problem: EnumerableMDP) -> float:
    """The exact expected return of the best policy, which may depend on the step."""
    value = np.zeros(len(problem.start))
    for _ in range(problem.horizon):
        q = problem.rewards + problem.discount * problem.transitions @ value
        value = np.where(problem.terminal, 0.0, q.max(1))
    return float(problem.start @ value)


@dataclass(frozen=True)
class Diffusion:
    """dX = -reversion X dt + noise dW with a reward of X^2 a unit of time until `horizon`, from X_0 normal with mean 0
    and deviation `spread` (an Ornstein-Uhlenbeck process).

    Its value is J(t, x) = p x^2 + noise^2 / (2 reversion) (left - p), with left = horizon - t and
    p = (1 - exp(-2 reversion left)) / (2 reversion): linear in the two `features`.
    """

    reversion: float
    noise: float
    horizon: float
    spread: float

    @property
    def solution(self) -> np.ndarray:
        """[2] weights of the features in the value."""
        return np.array([1.0, self.noise**2 / (2 * self.reversion)])

    def weights(self, t: np.ndarray) -> np.ndarray:
        """[..., 2] p and left - p at times t."""
        left = self.horizon - t
        p = -np.expm1(-2 * self.reversion * left) / (2 * self.reversion)
        return np.stack([p, left - p], axis=-1)

    def features(self, t: np.ndarray, x: np.ndarray) -> np.ndarray:
        """[..., 2] p x^2 and left - p; both are 0 at the horizon, as the value is."""
        weights = self.weights(t)
        return np.stack(np.broadcast_arrays(weights[..., 0] * x**2, weights[..., 1]), axis=-1)

    def variance(self, t: np.ndarray) -> np.ndarray:
        """Of X at times t."""
        kept = np.exp(-2 * self.reversion * t)
        return self.spread**2 * kept + self.noise**2 * (1 - kept) / (2 * self.reversion)

    def transition(self, dt: float) -> tuple[float, float]:
        """X_{t + dt} is normal given X_t: the factor of its mean, and its variance."""
        factor = float(np.exp(-self.reversion * dt))
        return factor, self.noise**2 * (1 - factor**2) / (2 * self.reversion)

    def paths(self, n: int, steps: int, rng: np.random.Generator) -> np.ndarray:
        """[n, steps + 1] paths at equally distant times, without error of discretisation."""
        factor, variance = self.transition(self.horizon / steps)
        x = np.empty((n, steps + 1))
        x[:, 0] = self.spread * rng.normal(size=n)
        for i in range(steps):
            x[:, i + 1] = factor * x[:, i] + np.sqrt(variance) * rng.normal(size=n)
        return x

    def error(self, theta: np.ndarray, times: int = 200) -> float:
        """Root of the mean squared distance of `features @ theta` [2] from the value, over times and the states that
        are met then, divided by the root of the mean squared value."""
        t = (np.arange(times) + 0.5) * self.horizon / times
        (p, rest), v = self.weights(t).T, self.variance(t)

        def square(theta: np.ndarray) -> float:
            a, b = theta[0] * p, theta[1] * rest
            return float(np.mean(3 * a**2 * v**2 + 2 * a * b * v + b**2))  # E X^2 = v, E X^4 = 3 v^2

        return float(np.sqrt(square(theta - self.solution) / square(self.solution)))


def tunnels(right: np.ndarray, rooms: int, depth: int, actions: int, bait: float, slip: float) -> EnumerableMDP:
    """Rooms one after the other, each with a fork: one action takes the bait, one enters a tunnel that pays 1 for the
    right action `depth` times in a row. Every way through a room takes depth + 1 steps, so a state has one step.

    Args:
        right: [rooms, depth + 1] the right action of each place; at a fork the next one (modulo `actions`) is the bait.
        rooms: at least 1.
        depth: at least 1.
        actions: at least 2.
        bait: its reward.
        slip: chance that another action, drawn uniformly from all, is taken instead.
    """
    width = 2 * (depth + 1)  # places on the way and off it, step by step
    states = rooms * width + 1
    transitions, rewards = np.zeros((states, actions, states)), np.zeros((states, actions))
    transitions[-1, :, -1] = 1
    for room in range(rooms):
        for place in range(depth + 1):
            on = room * width + 2 * place
            last = place == depth
            after = min((room + 1) * width, states - 1) if last else on + 2
            transitions[on + 1, :, after if last else after + 1] = 1
            transitions[on, :, after if last else after + 1] = 1
            if not last:
                transitions[on, right[room, place]] = np.eye(states)[after]
            if place == 0:
                rewards[on, (right[room, 0] + 1) % actions] = bait
            if last:
                rewards[on, right[room, place]] = 1.0
    start, terminal = np.eye(states)[0], np.arange(states) == states - 1
    return EnumerableMDP(
        (1 - slip) * transitions + slip * transitions.mean(1, keepdims=True),
        (1 - slip) * rewards + slip * rewards.mean(1, keepdims=True),
        start,
        terminal,
        rooms * (depth + 1),
    )


def lanes(critical: np.ndarray, right: np.ndarray, slip: float) -> EnumerableMDP:
    """A road of columns and lanes: an action goes on to the next column, one lane to the left, in the same lane or one
    to the right. In a critical cell all actions but one end the episode. Who gets to the end earns 1.

    Args:
        critical: [columns, lanes] whether a cell is critical.
        right: [columns, lanes] its right action.
        slip: chance to come out in a lane that is drawn uniformly from the three.
    """
    columns, width = critical.shape
    states = columns * width + 1
    transitions, rewards = np.zeros((states, 3, states)), np.zeros((states, 3))
    transitions[-1, :, -1] = 1
    for c in range(columns):
        for lane in range(width):
            reached = np.clip(lane + np.arange(-1, 2), 0, width - 1)
            ways = np.zeros((3, states))
            if c + 1 < columns:
                np.add.at(ways, (np.arange(3), (c + 1) * width + reached), 1.0)
            else:
                ways[:, -1] = 1
            ways = (1 - slip) * ways + slip * ways.mean(0)
            wrong = critical[c, lane] & (np.arange(3) != right[c, lane])
            ways[wrong] = np.eye(states)[-1]
            transitions[c * width + lane] = ways
            rewards[c * width + lane] = (c + 1 == columns) & ~wrong
    start = np.zeros(states)
    start[width // 2] = 1
    return EnumerableMDP(transitions, rewards, start, np.arange(states) == states - 1, columns)
