"""The guide from an environment and a file to a report, followed with an environment that is learned in a second."""

from pathlib import Path

import pytest
from guides import follow, own_modules
from helpers import rows_of

from longstride.control import recorded

QUICK = (
    "tasks.id=push:Push-v0",
    "agent.batch=32",
    "agent.critic_lr=0.02",
    "agent.policy_lr=0.02",
    "agent.levels.0.critic.trunk.width=8",
    "agent.levels.0.policy.trunk.width=8",
    "phases.0.iterations=4",
    "phases.0.updates=12",
    "evaluation.episodes=2",
)
PUSH = '''
import gymnasium
import numpy as np


class Push(gymnasium.Env):
    """Four steps, which earn what they push: from -1 to 1."""

    observation_space = gymnasium.spaces.Box(-9, 9, (3,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.normal(size=3).astype(np.float32), {}

    def step(self, action):
        return self.np_random.normal(size=3).astype(np.float32), float(action[0]), False, False, {}


gymnasium.register(id="Push-v0", entry_point=Push, max_episode_steps=4)
'''


def test_a_stranger_goes_from_an_environment_and_a_file_to_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("gymnasium", reason="needs pip install 'longstride[gymnasium]'")
    pytest.importorskip("h5py", reason="needs pip install 'longstride[minari]'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "push.py").write_text(PUSH)
    with own_modules(tmp_path):
        follow("offline.md", tmp_path, *QUICK)
    mine = recorded.read("mine.hdf5")
    assert [e.length for e in mine] == [200, 200] and not any(e.terminated for e in mine)
    assert "| `medium-replay.hdf5` |" in Path("pendulum/README.md").read_text()
    assert [row["iteration"] for row in rows_of(Path("runs/cql"), "eval")] == [0, 1, 2, 3, 4]
    assert "return of test episodes" in Path("runs/cql/report.html").read_text()
    assert Path("policy/policy.pt").is_file()
