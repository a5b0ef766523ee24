"""WebAgent-R1 at its own size: Qwen2.5-3B-Instruct on WebArena-Lite (arXiv 2505.16421).

| setting | released | source: weizhepei/WebAgent-R1, `WebAgent-R1/Train/verifiers` |
|---|---|---|
| model | Qwen2.5-3B-Instruct | `script.py` |
| budget | 15 turns of 1,024 tokens | `script.py`; `verifiers/utils/config_utils.py` |
| batch | 4 episodes a task; 1 on each of 4 GPUs, 16 times accumulated: 64; one pass, one step | `config_utils.py`, `run.sh` |
| rate | 1e-6, constant, no warm-up; betas 0.9 and 0.99, clipped at 0.01 | `config_utils.py` |
| loss | KL 1e-3 | `config_utils.py` |
| sampling | temperature 1 | `config_utils.py` |
| test | up to 30 turns | the paper, as in its table here |

These are the release's numbers: the paper's own could not be checked. Not known, and as in `webagent_r1`: iterations
(one pass over the tasks), clip. The paper starts from behaviour cloning (`cloning`), whose settings are not known
either. Its sites are not here: `tasks.type=web_benchmark tasks.format=webarena tasks.path=FILE`; left out, they are the
embedded ones.
"""

from longstride.papers.webagent_r1 import recipe

EPISODES, TURNS = 64, 15
TURN = {"turn_tokens": 1024}

RECIPE = recipe.RECIPE.replace(
    name="webagent_r1/published",
    model="Qwen/Qwen2.5-3B-Instruct",
    episodes_per_iteration=EPISODES,
    group_size=4,
    budget={"turns": TURNS, **TURN},
    test_budget={"turns": 30, **TURN},
    learner={
        "lr": 1e-6,
        "warmup_steps": 0,
        "betas": (0.9, 0.99),
        "clip": 0.01,
        "epochs": 1,
        "batch_samples": EPISODES * TURNS,
        "checkpointing": True,
    },
)
