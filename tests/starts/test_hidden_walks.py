"""What `base-trials` is made from, and what it is: it can copy, and knows the words."""

import random
from itertools import islice

from longstride.envs.hidden import Corridors
from longstride.envs.hidden.corridors import COLOURS, ROOMS
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods.base import demonstration
from longstride.models.load import SHIPPED, load_policy
from longstride.run.histories import LearningHistories
from longstride.setups import trials
from longstride.starts.hidden_walks import WORLDS, HiddenWalks


def test_demonstrations_are_a_function_of_their_number_and_of_training_rules_only() -> None:
    walks = HiddenWalks(episodes=2)
    found = list(islice(walks.demonstrations(0), 2 * len(WORLDS)))
    assert list(islice(walks.demonstrations(0, first=5), 4)) == found[5:9]
    assert {d.task.split for d in found} == {"train"} and len({d.task.source for d in found}) == 3
    for shown in found:
        assert sum("next" in seen for seen in shown.observations) == 1
        assert len(shown.texts) == len(shown.observations) == len(shown.weights)


def test_a_walk_reads_as_the_setup_has_trials() -> None:
    """The words of a trial of one who chooses at random are those of a demonstration, in the same forms."""
    chat = load_policy("base-trials").chat
    histories = LearningHistories()
    own = trials.recipe("own", histories, tasks=Corridors(), episodes=3)
    (sample,) = histories.samples(own, chat, 3, random.Random(0))
    unknown = chat.vocabulary["<unk>"]
    assert unknown not in sample.prompt_ids and unknown not in sample.sampled_ids


def test_the_shipped_start_is_small_and_can_copy() -> None:
    assert sum(p.stat().st_size for p in SHIPPED["base-trials"].iterdir()) < 0.6e6
    policy, rng = load_policy("base-trials"), random.Random(1)
    rows = []
    for _ in range(8):
        row = rng.sample(sorted(policy.chat.encode(" ".join([*ROOMS, *COLOURS]))), 12)
        rows.append(demonstration(policy.chat.observation("", first=True) + row, row))
    logprobs = Learner(policy.model, LearnerConfig(dtype="float32")).logprobs(rows)
    assert sum(map(sum, logprobs)) / (8 * 12) > -1.0, "of some 230 words the one that comes next"
