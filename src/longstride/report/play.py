"""A policy as data that a page can carry and run in the browser: weights in half precision, words, the pieces of its
chat format, and tasks as charts.

What always holds: the weights of a page are `float16`, so a page's policy is that of `rounded`, and what rounding does
to log-probabilities is measured and said; whatever cannot be carried is refused with a sentence for the page. The
scripts that read it are `static/llama.js` and `static/agent.js`.
"""

import base64
import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaForCausalLM

from longstride.core.task import Task
from longstride.envs.chart import MOST_PAGES, Chart, Charted
from longstride.models.load import Policy, load_policy
from longstride.models.tiny import TOKEN
from longstride.rollout.context import FullHistory, LatestObservation, Past, RecentObservations
from longstride.run.experiment import RUN_FILE, checkpoint_folders
from longstride.run.policies import load_run
from longstride.run.recipe import Recipe

MOST_CHARACTERS = 2_600_000
"""Of all weights in a page, which stays below 3 MB."""
TASKS = 12
"""Tasks in a page."""
LIKELY = 1e-3
"""Tokens whose log-probabilities are compared, before and after rounding, have at least this probability."""


class CannotPlay(Exception):
    """Why a policy is not carried, in a sentence."""


def playable(
    policies: Mapping[str, Policy], recipe: Recipe, tasks: Sequence[Task], room: int = MOST_CHARACTERS
) -> dict[str, Any]:
    """What the page's scripts need.

    Args:
        policies: by name, in the order in which they are shown; where not all of them have room the last one stays.
        recipe: gives context, sampling and tasks.
        tasks: of which some are carried, spread over what is given.
        room: characters that all weights may take.

    Raises:
        CannotPlay: the policy is too large or of another kind, or the tasks cannot be charted.
    """
    newest = list(policies.values())[-1]
    _check(newest, recipe)
    source = recipe.tasks
    if not isinstance(source, Charted):
        raise CannotPlay(f"Tasks of {recipe.tasks.type_name()} are no charts of pages, so they are not played here.")
    kept = {name: p for name, p in policies.items() if _alike(p, newest)}
    carried = {name: _weights(p.model) for name, p in kept.items()}
    while sum(map(len, carried.values())) > room:
        if len(carried) == 1:
            raise CannotPlay(
                f"The policy has {_size(newest):,} parameters, which is too large for a page; half a million is not."
            )
        del carried[next(iter(carried))]
    every = max(1, len(tasks) // TASKS)
    drawn = tasks[::every][:TASKS]
    charts = [chart for task in drawn if (chart := source.chart(task)) is not None]
    if len(charts) < len(drawn):
        raise CannotPlay(f"A task has more than {MOST_PAGES:,} pages, so the tasks are not played here.")
    sampling, words = recipe.evaluation.sampling or recipe.sampling, newest.chat.vocabulary
    return {
        "policies": [{"name": name, "weights": weights} for name, weights in carried.items()],
        "left_out": [name for name in policies if name not in carried],
        "rounding": max(rounding(policies[name], recipe, charts) for name in carried),
        "shape": _shape(newest.model),
        "words": sorted(words, key=words.__getitem__),
        "unknown": newest.tokenizer.unk_token_id,
        "special": sorted(newest.tokenizer.all_special_ids),
        "chat": newest.chat.pieces,
        "context": recipe.context.as_data(),
        "sampling": sampling.as_data(),
        "turn_tokens": recipe.test_budget.most("turn_tokens", 1),
        "horizon": recipe.test_budget.most("turns", 1),
        **_packed(charts),
    }


def carried(
    policies: Mapping[str, Policy], recipe: Recipe, tasks: Sequence[Task], room: int = MOST_CHARACTERS
) -> dict[str, Any]:
    """As `playable`, or `why` it cannot be."""
    try:
        return playable(policies, recipe, tasks, room)
    except CannotPlay as e:
        return {"why": str(e)}


def carried_run(run: Path, taken: int) -> dict[str, Any]:
    """What a run's report carries of its policy, where so many characters of it are taken.

    Raises:
        RunError, ConfigError, ModelError: see `run.policies.load_run`.
    """
    recipe, policy = load_run(run)
    tasks = recipe.held_out()
    return carried(policies_of(str(run), recipe, policy), recipe, tasks, MOST_CHARACTERS - taken)


def policies_of(target: str, recipe: Recipe, policy: Policy) -> dict[str, Policy]:
    """A run's policy beside its start, by what a page calls them; a model alone."""
    folders = checkpoint_folders(Path(target)) if (Path(target) / RUN_FILE).is_file() else []
    if len(folders) < 2:
        return {Path(policy.name).name: policy}
    return {"before training": load_policy(str(folders[0]), recipe.chat), "after training": policy}


def rounded(policy: Policy) -> Policy:
    """The policy with its weights rounded as a page has them."""
    model = copy.deepcopy(policy.model)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.half().float())
    return Policy(policy.name, model, policy.tokenizer, policy.chat, policy.max_context)


@torch.no_grad()
def rounding(policy: Policy, recipe: Recipe, charts: Sequence[Chart]) -> float:
    """The largest difference that rounding makes to the log-probability of a likely token, in nats, at each token of a
    greedy turn on the first page of each chart."""
    most, other = 0.0, rounded(policy).model
    limit = recipe.test_budget.most("turn_tokens", 1) or 1
    for chart in charts:
        ids = recipe.context.render(policy.chat, Past(chart.goal, [chart.pages[0].text]))
        for _ in range(limit):
            row = torch.tensor([ids], device=policy.device)
            one, two = (model(row).logits[0, -1].float().log_softmax(-1) for model in (policy.model, other))
            most = max(most, float((one - two).abs()[one.exp() >= LIKELY].max()))
            if (token := int(one.argmax())) in policy.chat.end_ids:
                break
            ids = [*ids, token]
    return most


def _check(policy: Policy, recipe: Recipe) -> None:
    """Raises: CannotPlay where the scripts have no such model, words, chat or context."""
    model = policy.model
    if not isinstance(model, LlamaForCausalLM):
        raise CannotPlay(f"The policy is a {type(model).__name__}; a page runs small Llamas.")
    config = model.config
    biases = any(name.endswith(".bias") for name, _ in model.named_parameters())
    rope = (config.rope_parameters or {}).get("rope_type", "default")
    if biases or config.hidden_act != "silu" or rope != "default":
        raise CannotPlay("The policy is a Llama with biases, another activation or other positions; a page has none.")
    backend = json.loads(policy.tokenizer.backend_tokenizer.to_str())
    pattern = ((backend.get("pre_tokenizer") or {}).get("pattern") or {}).get("Regex")
    if backend["model"]["type"] != "WordLevel" or pattern != TOKEN:
        raise CannotPlay("The policy's tokens are not words, and a page knows no others.")
    if (
        recipe.actions != "text"
        or policy.chat.thought_end is not None
        or recipe.trial.episodes > 1
        or recipe.companions
    ):
        raise CannotPlay(
            "The policy calls tools, thinks apart, plays trials or has company; a page plays none of these."
        )
    if type(recipe.context) not in (FullHistory, LatestObservation, RecentObservations):
        raise CannotPlay(f"A page has no context policy {recipe.context.type_name()}.")


def _alike(one: Policy, other: Policy) -> bool:
    """Whether one page's words and shape are right for both."""
    same = type(one.model) is type(other.model) and one.chat.vocabulary == other.chat.vocabulary
    return same and _shape(one.model) == _shape(other.model)


def _size(policy: Policy) -> int:
    return sum(weight.numel() for weight in policy.model.parameters())


def _shape(model: Any) -> dict[str, Any]:
    config = model.config
    return {
        "width": config.hidden_size,
        "layers": config.num_hidden_layers,
        "heads": config.num_attention_heads,
        "kv_heads": config.num_key_value_heads,
        "head": model.model.layers[0].self_attn.head_dim,
        "ffn": config.intermediate_size,
        "vocabulary": config.vocab_size,
        "context": config.max_position_embeddings,
        "theta": config.rope_parameters["rope_theta"],
        "epsilon": config.rms_norm_eps,
        "tied": bool(config.tie_word_embeddings),
    }


def _weights(model: Any) -> str:
    """All weights as float16, little-endian, in base64, in the order in which `llama.js` takes them."""
    parts = [model.model.embed_tokens.weight]
    for layer in model.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        parts += [layer.input_layernorm.weight]
        parts += [m.weight for m in (attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj)]
        parts += [layer.post_attention_layernorm.weight]
        parts += [m.weight for m in (mlp.gate_proj, mlp.up_proj, mlp.down_proj)]
    parts += [model.model.norm.weight]
    if not model.config.tie_word_embeddings:
        parts += [model.lm_head.weight]
    data = b"".join(p.detach().cpu().half().numpy().astype("<f2").tobytes() for p in parts)
    return base64.b64encode(data).decode()


def _packed(charts: Sequence[Chart]) -> dict[str, Any]:
    """Charts with their lines in one table: most of them stand on many pages."""
    lines: dict[str, int] = {}
    tasks = [
        {
            "goal": chart.goal,
            "answer": chart.answer,
            "distance": chart.distance,
            "pages": [
                [[lines.setdefault(line, len(lines)) for line in page.text.split("\n")], list(page.links)]
                for page in chart.pages
            ],
        }
        for chart in charts
    ]
    return {"tasks": tasks, "lines": list(lines)}
