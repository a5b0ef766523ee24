"""Loading and saving policies: a model, its tokenizer and its chat format, as a Hugging Face folder.

What always holds: weights come from safetensors only and no code of a checkpoint is ever run; a checkpoint that lacks a
weight is refused, never completed with random numbers; a folder is saved whole or not at all.
"""

import importlib.util
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from longstride.core.errors import ModelError
from longstride.core.files import flush, make_folder, special_in, system_error
from longstride.models import experts  # noqa: F401 (an architecture that transformers does not know)
from longstride.models.chat import ChatConfig, ChatFormat
from longstride.models.room import doing
from longstride.models.size import check_size

SHIPPED = {
    name: Path(__file__).parent / "shipped" / name
    for name in (
        "base",
        "base-dial",
        "base-dial-straight",
        "base-facts",
        "base-judge",
        "base-keep-last",
        "base-miniwob",
        "base-puzzles",
        "base-rules",
        "base-thoughts",
        "base-trials",
        "base-trials-experts",
        "base-wander",
    )  # fmt: skip
}
BASE = SHIPPED["base"]
"""Folders of the shipped models (see README.md there), in half precision, which halves the package."""

logging.disable_progress_bar()  # a bar for each checkpoint would run through the live display


@dataclass
class Policy:
    """A language model that acts."""

    name: str
    model: nn.Module
    tokenizer: Any
    chat: ChatFormat
    max_context: int
    """Tokens of prompt and answer together."""

    @property
    def device(self) -> str:
        """Where the model is, as torch names it."""
        return str(next(self.model.parameters()).device)


@doing("loading the model", "take a smaller one, weights=bfloat16, or learner.lora={}")
def load_policy(name: str, chat: ChatConfig | None = None, device: str = "cpu", dtype: str = "float32") -> Policy:
    """Loads a policy in evaluation mode, straight onto its device where accelerate is installed, which transformers
    needs for that; by way of this machine's memory otherwise.

    Args:
        name: `base` or another of `SHIPPED`, a folder, or a name on the Hugging Face hub.
        chat: how it is talked to; the defaults if left out.
        device: as torch names it.
        dtype: of the weights, as torch names it.

    Raises:
        ModelError: what is missing or damaged and what to do about it.
    """
    folder = folder_of(name)
    place = str(folder or name)
    if folder is not None:
        check_size(name, folder)
    straight = device != "cpu" and importlib.util.find_spec("accelerate") is not None
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            place,
            dtype=getattr(torch, dtype),
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            device_map=torch.device(device) if straight else None,
        )
    except torch.OutOfMemoryError:
        raise
    except Exception as e:  # whatever the library has for missing, damaged, foreign, absurd or unreachable files
        raise ModelError(
            f"{name!r} cannot be loaded as a causal language model ({_brief(e)}); expected are config.json of a known "
            "architecture and whole safetensors files"
        ) from e
    model, report = loaded
    lacking = sorted([*report["missing_keys"], *(entry[0] for entry in report["mismatched_keys"])])
    if lacking:
        raise ModelError(f"{name!r} lacks {len(lacking)} weights (such as {lacking[0]}); save or download it again")
    return make_policy(name, model.to(device), load_tokenizer(name), chat)


def load_tokenizer(name: str) -> Any:
    """The tokenizer of what `load_policy` loads by this name, without its weights.

    Raises:
        ModelError: there is none that can be loaded.
    """
    try:
        return AutoTokenizer.from_pretrained(str(folder_of(name) or name), trust_remote_code=False)
    except Exception as e:
        raise ModelError(
            f"{name!r} has no tokenizer that can be loaded ({_brief(e)}); put tokenizer.json and tokenizer_config.json "
            "of the model into its folder"
        ) from e


def make_policy(name: str, model: Any, tokenizer: Any, chat: ChatConfig | None = None) -> Policy:
    """A policy of a model and a tokenizer in memory; the tokenizer takes the template of `chat` over.

    Raises:
        ModelError: they do not fit each other, the context is unknown, or the chat template cannot be used.
    """
    text = model.config.get_text_config()
    context = getattr(text, "max_position_embeddings", None)
    if not isinstance(context, int):
        raise ModelError(f"{name!r}: config.json lacks max_position_embeddings; set it to the tokens the model can see")
    rows = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > rows:
        raise ModelError(
            f"{name!r}: the tokenizer has {len(tokenizer)} tokens, the model {rows} embeddings; use the tokenizer that "
            "belongs to the model"
        )
    if chat is not None and chat.template:
        tokenizer.chat_template = chat.template
    return Policy(name, model.eval(), tokenizer, ChatFormat(tokenizer, chat), context)


def save_policy(policy: Policy, folder: Path, half: bool = False) -> None:
    """Saves model and tokenizer as a Hugging Face folder, in place of one that is there.

    It is written beside its place, flushed to the disk and renamed: at `folder` there is never a part of a policy.

    Args:
        half: store the weights in float16, as the shipped model is.

    Raises:
        ModelError: it cannot be written.
    """
    model: Any = policy.model
    state = model.state_dict(keep_vars=True)
    if half:  # once a parameter, so that tied ones stay tied
        halves = {id(v): v.detach().half() if v.is_floating_point() else v.detach() for v in state.values()}
        state = {k: halves[id(v)] for k, v in state.items()}
    folder = folder.absolute()
    try:
        make_folder(folder.parent)
        mark = f".{folder.name}.saving-"
        for left in folder.parent.iterdir():  # by a save that was killed
            if left.name.startswith(mark):
                shutil.rmtree(left)
        with tempfile.TemporaryDirectory(prefix=mark, dir=folder.parent) as beside:
            new, old = Path(beside, "new"), Path(beside, "old")
            model.save_pretrained(new, state_dict=state, safe_serialization=True)
            policy.tokenizer.save_pretrained(new)
            for path in [*new.rglob("*"), new]:
                flush(path)
            if folder.exists():
                os.rename(folder, old)
            os.rename(new, folder)
            flush(folder.parent)
    except Exception as e:  # tokenizers has a bare one for errors of the system
        if not isinstance(e, OSError | SafetensorError) and system_error(e) is None:
            raise
        raise ModelError(f"{folder}: the model cannot be saved ({_brief(e)}); look after space and permissions") from (
            system_error(e) or e
        )


def folder_of(name: str) -> Path | None:
    """The folder that `name` means, or None for a name on the hub."""
    folder = SHIPPED.get(name) or Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ModelError(f"{folder} has no config.json; expected is a Hugging Face model folder")
        if special := special_in(folder):
            raise ModelError(f"{special} is no file, and reading it would wait for ever; expected is a model folder")
        return folder
    if name in SHIPPED:
        raise ModelError("the shipped model is missing from this installation; install longstride again")
    if folder.is_absolute() or name.startswith((".", "~")) or name.count("/") != 1 or folder.parent.is_dir():
        advice = "a run folder, a model folder, or a hub name such as Qwen/Qwen3-0.6B"
        if "://" in name:
            advice = f"a folder or a hub name; a model behind a chat API is model.url={name} model.name=NAME"
        raise ModelError(f"no model folder {name!r}; give base, {advice}")
    return None


def _brief(e: BaseException) -> str:
    return f"{type(e).__name__}: {' '.join(str(e).split())[:200]}"
