"""Policies beside the one that is trained: that of a run folder, and a recipe's companions."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from longstride.core.errors import ConfigError, ModelError, RunError
from longstride.engines.config import Local
from longstride.methods import Anchor
from longstride.models.api import ChatAPI
from longstride.models.chat import ChatConfig
from longstride.models.device import device_here
from longstride.models.load import Policy, load_policy
from longstride.rollout.chat_player import ChatPlayer
from longstride.rollout.players import LanguagePlayer, Player
from longstride.run.checkpoint import latest_checkpoint
from longstride.run.experiment import RUN_FILE, load_run_experiment
from longstride.run.recipe import Recipe


def load(name: str, chat: ChatConfig | None = None, device: str = "auto", weights: str = "float32") -> Policy:
    """The policy of a run's last checkpoint, which knows how it is talked to, or a model.

    Args:
        name: a run folder, or as for `models.load.load_policy`.
        chat: how a model is talked to; the defaults if left out.
        device: where a model goes, as a recipe says it.
        weights: the type in which they are kept, as torch names it.

    Raises:
        RunError: see `load_run`.
        ModelError: it cannot be loaded.
    """
    if (Path(name) / RUN_FILE).is_file():
        return load_run(Path(name), weights)[1]
    return load_policy(name, chat, device_here(device, name), weights)


def load_run(path: Path, weights: str = "float32") -> tuple[Recipe, Policy]:
    """The recipe of a run folder and the policy of its last checkpoint.

    Raises:
        RunError: not a run folder of a language agent, or nothing was finished in it yet.
    """
    recipe, checkpoint = load_run_experiment(path), latest_checkpoint(path)
    if not isinstance(recipe, Recipe):
        raise RunError(f"{path} is a run of a {recipe.type_name()}, which has no language model; expected a recipe")
    if checkpoint is None:
        raise RunError(f"{path} has no checkpoint yet; let the run finish an iteration, or evaluate {recipe.model!r}")
    folder = str(checkpoint.folder)
    return recipe, load_policy(folder, recipe.chat, device_here(recipe.device, folder), weights)


def companion_players(policy: Policy | ChatAPI, recipe: Recipe) -> dict[str, Player]:
    """The companions of a recipe at work, by speaker, in engines of this process: a server has the policy alone. One
    behind a chat API is told texts, and what it says is made ids of the policy's.

    Raises:
        ConfigError: the policy is behind a chat API, and one of them is not, which could not read what it says.
        ModelError: one of them cannot be loaded, or has not the policy's tokens, which both read.
    """
    players: dict[str, Player] = {}
    config = recipe.engine if isinstance(recipe.engine, Local) else Local()
    for name, companion in recipe.companions.items():
        if isinstance(companion.model, ChatAPI):
            reader = policy.chat if isinstance(policy, Policy) else None
            players[name] = ChatPlayer(companion.model, companion.chat, companion.context, companion.sampling, reader)
            continue
        if isinstance(policy, ChatAPI):
            raise ConfigError(
                f"companions.{name}: {companion.model!r} reads tokens, and {policy} gives text alone; take a companion "
                "behind an API too"
            )
        other = load_policy(companion.model, companion.chat, policy.device)
        with_tokens_of(policy, other, f"companions.{name}: {companion.model!r}")
        engine = config.make(other, 0, [companion.sampling])
        player = LanguagePlayer(engine, other.chat, companion.context, companion.sampling)
        if companion.follows is not None:
            player = EarlierSelf(player, companion.follows, with_shapes_of(policy, other, name).model)
        players[name] = player
    return players


class EarlierSelf(LanguagePlayer):
    """A companion whose weights follow those of the policy.

    Args:
        player: who it is at first.
        follows: says how they follow.
        model: what `player` samples from, and nobody else.
    """

    def __init__(self, player: LanguagePlayer, follows: Anchor, model: nn.Module) -> None:
        super().__init__(player.engine, player.chat, player.context, player.sampling)
        self._follows, self._model = follows, model

    @torch.no_grad()
    def follow(self, weights: nn.Module, iteration: int) -> None:
        """Moves after the update of an iteration, toward the policy's complete weights."""
        if share := self._follows.step(iteration):
            for mine, theirs in zip(self._model.parameters(), weights.parameters(), strict=True):
                mine.lerp_(theirs.to(mine.dtype), share)
            self.engine.update(self._model, iteration)

    def state(self) -> dict[str, torch.Tensor]:
        """Its weights, by name."""
        return {name: p.detach() for name, p in self._model.named_parameters()}

    @torch.no_grad()
    def load_state(self, tensors: Mapping[str, torch.Tensor], iteration: int) -> None:
        """Takes back what `state` gave after an iteration.

        Raises:
            RunError: it belongs to another model.
        """
        mine = dict(self._model.named_parameters())
        if {n: t.shape for n, t in tensors.items()} != {n: p.shape for n, p in mine.items()}:
            raise RunError("the checkpoint has the earlier self of another model; start the run anew")
        for name, tensor in tensors.items():
            mine[name].copy_(tensor)
        self.engine.update(self._model, iteration)


def with_shapes_of(policy: Policy, other: Policy, name: str) -> Policy:
    """A companion, whose weights can follow those of the policy.

    Args:
        name: of the companion.

    Raises:
        ModelError: they have other shapes.
    """
    mine, theirs = ([p.shape for p in model.parameters()] for model in (policy.model, other.model))
    if mine != theirs:
        raise ModelError(
            f"companions.{name}.follows: {other.name!r} has weights of other shapes than the policy, and cannot follow "
            "it; set its model to the one that training starts from"
        )
    return other


def with_tokens_of(policy: Policy, other: Policy, name: str) -> Policy:
    """Another policy, which reads the tokens of this one.

    Args:
        name: what it is called where it was written.

    Raises:
        ModelError: it has other tokens.
    """
    check_tokens(policy, other.chat.vocabulary, name)
    return other


def check_tokens(policy: Policy, vocabulary: Mapping[str, int], name: str) -> None:
    """Refuses a model that does not read the tokens of a policy.

    Args:
        vocabulary: of the other one, the id of each token.
        name: what it is called where it was written.

    Raises:
        ModelError: it has other tokens.
    """
    if vocabulary != policy.chat.vocabulary:
        raise ModelError(
            f"{name} has another vocabulary than the policy, and each reads the tokens of the other; choose models of "
            "one tokenizer"
        )
