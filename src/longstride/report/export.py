"""A run for other people's tools: its policy as a Hugging Face folder with its weights, or adapters alone, and a model
card; its episodes in the formats of `rollout.formats`.

What always holds: what is exported is what `eval` evaluates; a folder appears whole or not at all; the card says what
was measured, on what, and how to load it.
"""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, get_args

from longstride import __version__
from longstride.core.errors import ConfigError, RunError
from longstride.core.files import new_folder, write_atomically
from longstride.core.sealed import dumps, unseal_lines
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.models.adapters import adapt, save_adapters
from longstride.models.load import SHIPPED, load_policy
from longstride.report.html import verdict
from longstride.report.protocol import (
    PROTOCOL,
    by_place,
    names_of,
    of_tasks,
    protocol_of,
    strategy_named,
    template_of_run,
)
from longstride.report.rows import Record, content, interval, measure, read_record
from longstride.rollout.formats import Format, Origin, write_episodes
from longstride.rollout.media import MEDIA, MediaFolder
from longstride.rollout.store import TRAJECTORIES, TrajectoryStore
from longstride.run.checkpoint import PENDING, Checkpoint, latest_checkpoint
from longstride.run.experiment import load_run_experiment
from longstride.run.recipe import Recipe

OURS = ("trainer.safetensors", "trainer.json", PENDING)
"""Files of a checkpoint that only resuming needs."""
ADAPTER = "adapter/"
"""What the names of the learner's tensors begin with that are adapters."""
Episodes = Literal["training", "before", "after"]
EPISODES: tuple[Episodes, ...] = get_args(Episodes)
"""Those that were trained on, or those that a run keeps of its evaluations before and after training."""


def export(run: Path, target: Path, adapter: bool = False) -> Path:
    """Writes the policy of a run's last checkpoint to a new folder.

    Args:
        run: the run folder.
        target: must not exist, or be empty.
        adapter: the LoRA adapters alone, for peft, in place of merged weights.

    Raises:
        RunError: not a run folder of a language agent, nothing finished in it yet, or the target holds something.
        ConfigError: adapters are asked for and cannot stand alone.
    """
    recipe, checkpoint = load_run_experiment(run), latest_checkpoint(run)
    if not isinstance(recipe, Recipe):
        raise RunError(f"{run} is a run of a {recipe.type_name()}, which has no language model to export")
    if checkpoint is None:
        raise RunError(f"{run} has no checkpoint yet; let the run finish an iteration")
    with new_folder(target) as part:
        if adapter:
            _save_adapters(recipe, checkpoint, part)
        else:
            shutil.copytree(checkpoint.folder, part, ignore=shutil.ignore_patterns(*OURS), dirs_exist_ok=True)
        (part / "README.md").write_text(
            model_card(recipe, read_record(run), target.absolute().name, adapter), encoding="utf-8"
        )
    return target.absolute()


def export_trajectories(run: Path, target: Path, form: Format = "atif", which: Episodes = "training") -> int:
    """Writes the episodes of a run to a new folder; returns how many.

    Args:
        run: the run folder.
        target: must not exist, or be empty.
        form: the format.
        which: of its episodes.

    Raises:
        RunError: not a run folder of a language agent, there are none, one is damaged, the target holds something, or
            an episode has what the format cannot hold.
        MissingExtra: pyarrow is not installed, and `form` is parquet.
    """
    recipe = load_run_experiment(run)
    if not isinstance(recipe, Recipe):
        raise RunError(f"{run} is a run of a {recipe.type_name()}, which has no episodes of a language agent")
    origin = Origin(
        run.resolve().name, recipe.name, str(recipe.model), read_record(run).recipe_text, which != "training"
    )
    n = write_episodes(_episodes(run, which), target, form, origin)
    if which != "training":
        _write_protocol(
            run, recipe, {name: played[0].task for name, played in by_place(_episodes(run, which)).items()}, target
        )
    return n


def _write_protocol(run: Path, recipe: Recipe, seen: Mapping[str, Task], target: Path) -> None:
    """Writes the protocol of evaluation episodes, whose tasks were `seen` by the policy under these names: with what an
    environment says of itself in their goals."""
    held_out = recipe.held_out()
    asked = dict(zip(names_of(task.id for task in held_out), held_out, strict=True))
    tasks = [asked.get(name, task) for name, task in seen.items()]
    strategy = strategy_named(recipe, read_record(run).strategy)
    protocol = protocol_of(recipe, tasks, strategy, template_of_run(run, recipe))
    said = {"protocol": protocol, "episodes": of_tasks(list(seen.values()))}
    write_atomically(target / PROTOCOL, dumps(said, indent=1) + "\n")


def _episodes(run: Path, which: Episodes) -> Iterator[Trajectory]:
    if which == "training":
        store = TrajectoryStore(run / TRAJECTORIES)
        if not len(store):
            raise RunError(f"{run} has no training episodes; --episodes before or after takes those of evaluations")
        yield from store
        return
    path, media = run / "episodes" / f"{which}.jsonl", MediaFolder(run / MEDIA)
    if not path.is_file():
        raise RunError(f"{run} keeps no episodes of an evaluation {which} training")
    for k, line in enumerate(unseal_lines(content(path)), 1):
        try:
            yield Trajectory.from_json((line or b"").decode("ascii"), media.find)
        except RunError as e:
            raise RunError(f"{path}, line {k}: {e}") from e


def _save_adapters(recipe: Recipe, checkpoint: Checkpoint, folder: Path) -> None:
    """Saves the adapters of a checkpoint, with the tokenizer."""
    lora = recipe.learner.lora
    if lora is None:
        raise ConfigError("the run trained all weights, not adapters (learner.lora); leave out --adapter")
    if recipe.cloning is not None:
        raise ConfigError(
            "the adapters stand on the model after cloning, which nobody else has: leave out --adapter, and the merged "
            "weights are exported"
        )
    policy = load_policy(recipe.start, recipe.chat)
    adapt(policy.model, lora)
    known = dict(policy.model.named_parameters())
    for name, tensor in checkpoint.tensors().items():
        if name.startswith(ADAPTER):
            known[name.removeprefix(ADAPTER)].detach().copy_(tensor)
    save_adapters(policy.model, folder, str(SHIPPED.get(recipe.start, recipe.start)))
    policy.tokenizer.save_pretrained(folder)


def model_card(recipe: Recipe, record: Record, name: str, adapter: bool) -> str:
    """The text of `README.md`: front matter for the hub, what was measured, how to load it, the recipe."""
    measured = ""
    for label, row in zip(("before training", "after training"), record.ends, strict=True):
        value, ends = measure(row, "success"), interval(row or {})
        if value is not None:
            measured += f"| {label} | {value:.3f} | {f'{ends[0]:.3f} to {ends[1]:.3f}' if ends else ''} |\n"
    on_the_hub = recipe.start not in SHIPPED and not Path(recipe.start).exists()
    stands = f"The adapters stand on `{recipe.start}`"
    if not on_the_hub:
        place = "Longstride brings" if recipe.start in SHIPPED else "is a folder"
        stands += f", which {place}: elsewhere,\nset `base_model_name_or_path` in adapter_config.json to where it is"
    said = verdict(record)
    return CARD.format(
        library="peft" if adapter else "transformers",
        imports=PEFT_IMPORTS if adapter else "from transformers import AutoModelForCausalLM, AutoTokenizer",
        stands=f"{stands}.\n\n" if adapter else "",
        kind="AutoPeftModelForCausalLM" if adapter else "AutoModelForCausalLM",
        base=f"base_model: {recipe.start}\n" if on_the_hub else "",
        name=name,
        recipe=recipe.name,
        version=__version__,
        verdict=said[:1].upper() + said[1:],
        tasks=recipe.tasks.type_name(),
        horizon=recipe.test_budget.limits("turns", 1)["hard"],
        measured=measured,
        toml=record.recipe_text.replace("```", "` ` `"),
    )


PEFT_IMPORTS = "from peft import AutoPeftModelForCausalLM\nfrom transformers import AutoTokenizer"
CARD = """---
library_name: {library}
pipeline_tag: text-generation
{base}tags:
- longstride
- reinforcement-learning
---

# {name}

A policy trained by the recipe `{recipe}` of Longstride {version}. {verdict}.

| held-out tasks (`{tasks}`, turns: at most {horizon}) | success | 95 % interval |
|---|---|---|
{measured}
## How to load it

```python
{imports}

model = {kind}.from_pretrained("{name}")
tokenizer = AutoTokenizer.from_pretrained("{name}")
```

{stands}It was trained on prompts of one form: the task's goal and the first observation in the first user message,
each later observation in a user message of its own, and what the model said between them, by the chat template in this
folder.

<details><summary>Recipe</summary>

```toml
{toml}```

</details>
"""
