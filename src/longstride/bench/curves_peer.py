"""Learning curves of Stable-Baselines3 and d3rlpy in their own environment: run by that environment's Python, imports
nothing of Longstride.

Each line of standard input is a JSON object: `algorithm`, `seed`, `id` and `kwargs` (of the environment), `units` (of
two hidden layers), `total` and `every` (steps of the environment, or updates), `episodes` (of a test), `settings` (of
the algorithm) and, offline, `data` (an npz of D4RL's arrays). Each answer is one: `x`, and `y`, the mean return of the
test episodes.
"""

import contextlib
import json
import sys
import warnings
from typing import Any


def main():
    import torch

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    for line in sys.stdin:
        asked = json.loads(line)
        with contextlib.redirect_stdout(sys.stderr):  # what libraries print is no answer
            x, y = offline(asked) if asked.get("data") else online(asked)
        print(json.dumps({"x": x, "y": y}), flush=True)


def tested(asked, act):
    """Mean return of test episodes, the same ones for the same seed; `act` takes [B, O] and gives what the environment
    takes."""
    import gymnasium  # pyright: ignore[reportMissingImports]
    import numpy as np

    envs = [gymnasium.make(asked["id"], **asked["kwargs"]) for _ in range(asked["episodes"])]
    seen = np.stack([env.reset(seed=1000 * (asked["seed"] + 1) + k)[0] for k, env in enumerate(envs)])
    returns, going = np.zeros(len(envs)), np.ones(len(envs), bool)
    while going.any():
        for k, action in enumerate(act(seen)):
            if going[k]:
                seen[k], reward, terminated, truncated, _ = envs[k].step(action)
                returns[k] += reward
                going[k] = not (terminated or truncated)
    return float(returns.mean())


def online(asked):
    """The curve of an algorithm of Stable-Baselines3 by steps of the environment."""
    import gymnasium  # pyright: ignore[reportMissingImports]
    import numpy as np
    import stable_baselines3  # pyright: ignore[reportMissingImports]
    import torch
    from stable_baselines3.common.callbacks import BaseCallback  # pyright: ignore[reportMissingImports]
    from stable_baselines3.common.noise import NormalActionNoise  # pyright: ignore[reportMissingImports]

    settings = dict(asked["settings"])
    scale, noise = settings.pop("reward_scale", 1.0), settings.pop("noise", None)
    env = gymnasium.make(asked["id"], **asked["kwargs"])
    if scale != 1.0:
        env = gymnasium.wrappers.TransformReward(env, lambda reward: scale * reward)
    if noise:
        size = env.action_space.shape or ()
        settings["action_noise"] = NormalActionNoise(np.zeros(size), np.full(size, noise))
    if "train_freq" in settings and isinstance(settings["train_freq"], list):
        settings["train_freq"] = tuple(settings["train_freq"])
    net = {"net_arch": [asked["units"]] * 2, "activation_fn": torch.nn.ReLU}
    model = getattr(stable_baselines3, asked["algorithm"].upper())(
        "MlpPolicy", env, seed=asked["seed"], device="cpu", policy_kwargs=net, **settings
    )
    x, y = [], []

    class Watch(BaseCallback):
        """Tests the policy between collecting and collecting: all that was collected has been learned from."""

        def _on_rollout_start(self):
            done = self.num_timesteps
            if not x or done >= x[-1] + asked["every"] or done >= asked["total"] > x[-1]:
                x.append(done)
                y.append(tested(asked, lambda seen: model.predict(seen, deterministic=True)[0]))

        def _on_step(self):
            return not (x and x[-1] >= asked["total"])

    model.learn(10 * asked["total"] + 10_000, callback=Watch())
    return x, y


def offline(asked):
    """The curve of an algorithm of d3rlpy by updates."""
    import d3rlpy  # pyright: ignore[reportMissingImports]
    import gymnasium  # pyright: ignore[reportMissingImports]
    import numpy as np

    d3rlpy.seed(asked["seed"])
    settings = dict(asked["settings"])
    scale, steps = settings.pop("reward_scale", 1.0), settings.pop("steps", 1)
    space: Any = gymnasium.make(asked["id"], **asked["kwargs"]).action_space
    middle, half = (space.high + space.low) / 2, (space.high - space.low) / 2
    with np.load(asked["data"]) as file:
        data = d3rlpy.dataset.MDPDataset(
            observations=file["observations"],
            actions=((file["actions"] - middle) / half).astype(np.float32),
            rewards=scale * file["rewards"],
            terminals=file["terminals"],
            timeouts=file["timeouts"],
        )
    layers = d3rlpy.models.encoders.VectorEncoderFactory([asked["units"]] * 2)
    kind = getattr(d3rlpy.algos, f"{asked['algorithm']}Config")
    names = {
        "actor_encoder_factory",
        "critic_encoder_factory",
        "value_encoder_factory",
    } & kind.__dataclass_fields__.keys()
    algorithm = kind(**settings, **dict.fromkeys(names, layers)).create(device="cpu:0")
    algorithm.build_with_dataset(data)

    def test():
        return tested(asked, lambda seen: middle + half * algorithm.predict(seen))

    x, y = [0], [test()]
    for done in range(1, steps * asked["total"] + 1):
        algorithm.update(data.sample_transition_batch(algorithm.batch_size))
        if done % (steps * asked["every"]) == 0:
            x.append(done // steps)
            y.append(test())
    return x, y


main()
