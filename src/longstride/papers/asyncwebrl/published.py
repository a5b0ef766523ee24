"""AsyncWebRL at its own size: Qwen3-VL-8B on WebGym's tasks (arXiv 2606.05597).

| setting | released | source: documentation of the release (algorithm, configuration) |
|---|---|---|
| model | Qwen3-VL-8B-Instruct | WebGym's |
| budget | 10, 20, 30 turns by difficulty, of 4,096 tokens; tests at 30, 50, 70 | configuration |
| batch | 16 groups of 8 episodes with unequal rewards; two steps, three passes | configuration |
| rate | 5e-6, cosine to a tenth over 300 steps, warm-up 1.67 %; weight decay 0.01, clipped at 1 | configuration |
| staleness | 2 versions | configuration |
| credit | (r - mean) / deviation, divided by k = 10 | algorithm |
| loss | clip 0.2, dual 3; weight w masked above 5; mean over tokens, no KL | algorithm |
| context, sampling | the newest page; temperature 1 | configuration |

An iteration starts 16 groups here, and those with equal rewards are left out, where the release goes on until it has
16; a step has half of the turns that these have at most. Not known, and as in `asyncwebrl`: iterations, betas.
Screenshots and judge are not here, nor are the sites: `tasks.type=web_benchmark tasks.format=webgym tasks.path=FILE`;
left out, they are the embedded ones.
"""

from longstride.curriculum import Fixed
from longstride.curriculum.schedules import PerDifficulty
from longstride.papers.asyncwebrl import recipe
from longstride.rollout.context import RecentObservations

EASY, MEDIUM, HARD = 10, 20, 30
"""Turns in training."""
EPISODES = 16 * 8
DECAY = 300
"""Steps of the cosine."""
TURN = {"turn_tokens": 4096}

TRAIN = PerDifficulty(easy=Fixed(limit=EASY), medium=Fixed(limit=MEDIUM), hard=Fixed(limit=HARD))
TEST = PerDifficulty(easy=Fixed(limit=30), medium=Fixed(limit=50), hard=Fixed(limit=70))

RECIPE = recipe.RECIPE.replace(
    name="asyncwebrl/published",
    model="Qwen/Qwen3-VL-8B-Instruct",
    episodes_per_iteration=EPISODES,
    group_size=8,
    budget={"turns": TRAIN, **TURN},
    test_budget={"turns": TEST, **TURN},
    context=RecentObservations(),
    credit={"length_divisor": float(EASY)},
    learner={
        "lr": 5e-6,
        "warmup_steps": round(0.0167 * DECAY),
        "decay_steps": DECAY,
        "min_lr_ratio": 0.1,
        "weight_decay": 0.01,
        "clip": 1.0,
        "epochs": 3,
        "batch_samples": EPISODES * HARD // 2,
    },
)
