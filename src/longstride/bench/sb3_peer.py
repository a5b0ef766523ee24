"""Updates of Stable-Baselines3's SAC in its own environment: run by that environment's Python, imports nothing of
Longstride.

Each line of standard input is a JSON object: `units` (of two hidden layers), `rows` (of a batch), `updates`. Each
answer is one: `seconds`, the processor's.
"""

import json
import sys
import time


def main():
    import gymnasium  # pyright: ignore[reportMissingImports]
    import numpy as np
    import torch
    from stable_baselines3 import SAC  # pyright: ignore[reportMissingImports]
    from stable_baselines3.common.logger import Logger  # pyright: ignore[reportMissingImports]

    class Still(gymnasium.Env):
        """Shows and takes as many numbers as the mazes that Longstride's side learns from."""

        observation_space = gymnasium.spaces.Box(-1, 1, (6,), np.float32)
        action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

        def reset(self, seed=None, options=None):
            return self.observation_space.sample(), {}

        def step(self, action):
            return self.observation_space.sample(), 0.0, False, False, {}

    torch.set_num_threads(1)
    made = {}
    for line in sys.stdin:
        asked = json.loads(line)
        units, rows = asked["units"], asked["rows"]
        if (units, rows) not in made:
            model = SAC(
                "MlpPolicy", Still(), batch_size=rows, buffer_size=4000, device="cpu", seed=0, ent_coef="auto_0.01",
                policy_kwargs={"net_arch": [units, units]},
            )  # fmt: skip
            model.set_logger(Logger(None, []))
            rng = np.random.default_rng(0)
            for _ in range(2000):
                seen, after = (rng.normal(size=(1, 6)).astype(np.float32) for _ in range(2))
                action = rng.uniform(-1, 1, (1, 2)).astype(np.float32)
                model.replay_buffer.add(seen, after, action, np.zeros(1), np.zeros(1, bool), [{}])
            made[units, rows] = model
        began = time.process_time()
        made[units, rows].train(gradient_steps=asked["updates"], batch_size=rows)
        print(json.dumps({"seconds": time.process_time() - began}), flush=True)


main()
