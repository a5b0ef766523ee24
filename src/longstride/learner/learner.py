"""The learner: samples with per-token streams become optimiser steps.

What a step minimises is a `methods.Loss`; left out, it is `Reinforce`: over N samples `-(1/N) sum_samples
sum_tokens A_t log pi(token | before)`. What always holds: the gradient does not depend on how a step is cut into
micro-batches, what rows share, or how many processes take part; a step whose gradient is not finite changes nothing
and is counted; the policies that a loss holds on to change only as its anchors say. The learner is blind to the method.
Under `parallel.joined` all ranks make the same calls with the same samples and get the same answers.
"""

import copy
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from longstride.core.errors import ConfigError, RunError
from longstride.core.seeds import derive
from longstride.learner import parallel
from longstride.learner.auxiliary import HasLosses, in_one_pass, own_losses
from longstride.learner.batching import MicroBatch, StreamTable, micro_batch, packs, rows_of, shuffled, steps_of, units
from longstride.learner.config import LearnerConfig
from longstride.learner.eight_bit import adamw_8bit, plain, quantised
from longstride.learner.likelihood import TokenLikelihood
from longstride.learner.moments import MOMENTS, SCALES, taken_moments
from longstride.learner.packing import Row, TrainedToken
from longstride.learner.sharding import filled, shard, skeleton
from longstride.learner.threads import crew, shared_out
from longstride.methods.base import ANCHOR, BEHAVIOUR, PROXIMAL, REFERENCE, Sample
from longstride.methods.losses import Loss, LossTerms, PolicyDrift, Reinforce
from longstride.models.adapters import adapt, merged, without_adapters
from longstride.models.room import doing

NATIVE_TOKENS = 512
"""Padded tokens of a native pass, at most: what it computes then stays in the cache of a core."""
PATIENCE = 10
"""Steps in a row without a finite gradient after which training is given up."""
PREFIXES = {REFERENCE: "reference/", ANCHOR: "anchor_policy/"}
"""What the names of the tensors of the policies that a loss holds on to begin with in `state`."""
STEP_FIELDS = frozenset({"loss", "grad_norm", "lr", "tokens", "skipped"})
"""What `step` returns of every step; anything else is a metric of the loss."""


class Learner:
    """AdamW over a language model, with the linear warm-up and cosine of `LearnerConfig`.

    Args:
        model: a causal language model; it is changed in place (`LearnerConfig.lora` puts adapters into it).
        config: the numbers.
        loss: what is minimised.
        reference: a model of the same tokens, which the loss holds on to; it is frozen in place. Left out, it is
            the model as it is now: a copy where the loss asks for one, or, where there are adapters, the model without
            them. A second policy that the loss holds on to (`ANCHOR`) begins as a copy of it.
        needs: streams of the losses that take its place later.
        seed: of the run; adapters begin by it.

    Raises:
        ConfigError, ModelError: adapters or checkpointing are asked for and cannot be had; or the model has losses of
            its own, and there are several processes.
    """

    def __init__(
        self,
        model: nn.Module,
        config: LearnerConfig,
        loss: Loss | None = None,
        reference: nn.Module | None = None,
        needs: frozenset[str] = frozenset(),
        seed: int = 0,
    ) -> None:
        self.model: Any = model
        self.config = config
        self._seed = seed
        self.loss = loss or Reinforce()
        parallel.broadcast_tensors(list(model.parameters()))
        held = (self.loss.needs | needs) & PREFIXES.keys()
        if ANCHOR in held and config.lora is not None:
            raise ConfigError(
                "a loss holds on to an earlier self, and with learner.lora there are no weights of one; leave out "
                "learner.lora"
            )
        if reference is None and held and config.lora is None:
            reference = copy.deepcopy(model)
        anchor = copy.deepcopy(reference) if ANCHOR in held else None
        if config.lora is not None:
            adapt(model, config.lora, seed)
        self._likelihood = TokenLikelihood(model, config)
        self._crew = [self._likelihood]
        """What computes the micro-batches of a step, a thread each."""
        if self._likelihood.native:
            self._crew = crew(self._likelihood, config)
        self._pass_tokens = min(config.micro_tokens, NATIVE_TOKENS) if self._likelihood.native else config.micro_tokens
        self._own = model if isinstance(model, HasLosses) else None
        """The model, where it has losses of its own."""
        if self._own is not None and parallel.world() > 1:
            raise ConfigError(f"the losses of {type(model).__name__} are of a whole step: train it in one process")
        self._skeleton: nn.Module | None = None
        if config.sharded and parallel.world() > 1:
            self._skeleton = skeleton(model)
            shard(self._likelihood, self._likelihood.layers)
        self._held = {
            name: self._frozen(policy)
            for name, policy in ((REFERENCE, reference), (ANCHOR, anchor))
            if policy is not None
        }
        """The policies that the loss holds on to, by their streams."""
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.device = next(iter(self.parameters.values())).device
        if config.optimiser == "adamw_8bit":
            self.optimiser, self._plain, self._taken = adamw_8bit(self.parameters.values(), config), plain, quantised
        else:
            self._plain, self._taken = dict, taken_moments
            self.optimiser = torch.optim.AdamW(
                self.parameters.values(), config.lr, config.betas, weight_decay=config.weight_decay, fused=True
            )
        self.steps = 0
        """Optimiser steps taken, skipped ones included: the place in the learning-rate schedule."""
        self.skipped = 0
        """Steps that were skipped because their loss or gradient was not finite."""
        self._skipped_in_a_row = 0
        self._moved: set[str] = set()
        self._unmoved = False

    def _frozen(self, reference: nn.Module) -> TokenLikelihood:
        reference.requires_grad_(False).to(next(self.model.parameters()).device)
        parallel.broadcast_tensors(list(reference.parameters()))
        likelihood = TokenLikelihood(reference, self.config)
        if self._skeleton is not None:
            shard(likelihood, likelihood.layers)
        return likelihood

    def full_model(self, merge: bool = True) -> nn.Module:
        """The policy as an ordinary module, for engines and checkpoints: the model itself, or, where it is sharded or
        has adapters to `merge`, a copy made now with complete, merged weights. All ranks must ask for it."""
        model = self.model
        if self._skeleton is not None:
            model = filled(self._skeleton, dict(self.model.named_parameters()))
        if self.config.lora is None or not merge:
            return model
        return merged(model, in_place=model is not self.model)  # what was made whole now is a copy already

    def lr(self, step: int) -> float:
        """Learning rate of optimiser step `step`, counted from 0."""
        c = self.config
        if step < c.warmup_steps:
            return c.lr * (step + 1) / c.warmup_steps
        if c.decay_steps is None:
            return c.lr
        done = min((step - c.warmup_steps) / max(c.decay_steps - c.warmup_steps, 1), 1.0)
        return c.lr * (c.min_lr_ratio + (1 - c.min_lr_ratio) * (1 + math.cos(math.pi * done)) / 2)

    def accumulate(self, samples: Sequence[Sample]) -> tuple[float, dict[str, float]]:
        """Sets the gradients of one optimiser step's loss; returns the loss, and `tokens` (trained) with the metrics
        of `methods.losses.PolicyDrift` and the losses of the model's own, which are not part of the one returned."""
        self.optimiser.zero_grad()
        shares, denominator = self.loss.aggregation(samples)
        table = StreamTable(samples, self.loss.coefficients(samples), shares)
        passes = self._passes(samples, table, self._likelihood)
        own: dict[str, float] = {}
        if self._own is not None:
            passes = list(passes)
            in_one_pass(passes, self._own)

        def work(
            likelihood: TokenLikelihood, share: Iterable[tuple[MicroBatch, bool]]
        ) -> list[tuple[float, LossTerms]]:
            done: list[tuple[float, LossTerms]] = []
            for batch, idle in share:
                with _passing(batch), self._watched(batch):
                    logp_P = likelihood(batch, entropy=self.loss.entropy > 0)
                    if idle:
                        (0 * logp_P.sum()).backward()
                        continue
                    terms = self.loss(logp_P, batch)
                    if self._unmoved and BEHAVIOUR in batch.streams:
                        gap_P = logp_P.detach() - batch.streams[BEHAVIOUR]
                        terms.metrics["sampling_gap"] = gap_P.abs().nan_to_num()
                    part = whole = terms.loss_P.sum() / denominator
                    if self._own is not None:
                        more, found = own_losses(self._own, batch, samples)
                        whole = part + more
                        own.update(found)
                    whole.backward()
                    done.append((part.item(), replace(terms, loss_P=terms.loss_P.detach())))
            return done

        done = work(self._likelihood, passes) if len(self._crew) == 1 else shared_out(work, self._crew, list(passes))
        for likelihood in self._crew:  # threads got their passes as a list, so these had ended before the work
            likelihood.rest()
        if self._skeleton is None:
            parallel.sum_gradients(list(self.parameters.values()))
        mine, drift = PolicyDrift(), PolicyDrift()
        for _, terms in done:
            mine.add(terms)
        # numbers alone: a tensor would come to every process on the device of the one that sent it
        parts = parallel.gather([(sum((part for part, _ in done), 0.0), mine)])
        for _, theirs in parts:
            drift.join(theirs)
        loss = sum((part for part, _ in parts), 0.0)
        return loss, {"tokens": drift.tokens, **drift.metrics(), **own}

    def _watched(self, batch: MicroBatch) -> AbstractContextManager[None]:
        """A pass after which a model's own losses can be asked for. Noise is drawn only for what others said: of what
        the policy sampled itself, the distribution that it was sampled from is trained."""
        if self._own is None:
            return nullcontext()
        noise = derive(self._seed, "gates", self.steps)
        return self._own.watched(None if BEHAVIOUR in batch.streams else noise)

    def _branch_tokens(self, likelihood: TokenLikelihood) -> int:
        """How long a row may be that branches; 0 where the model takes none."""
        return self._pass_tokens if likelihood.trees else 0

    def _rows(self, samples: Sequence[Sample], table: StreamTable, likelihood: TokenLikelihood) -> list[Row]:
        return rows_of(samples, table, self._branch_tokens(likelihood))

    def _passes(
        self, samples: Sequence[Sample], table: StreamTable, likelihood: TokenLikelihood
    ) -> Iterator[tuple[MicroBatch, bool]]:
        """This rank's micro-batches, laid out as the model takes them that reads them, and whether each is idle:
        sharded ranks must all compute equally often."""
        rows, one = self._rows(samples, table, likelihood), likelihood.packed
        shares = parallel.balance([len(row.ids) for row in rows], parallel.world())
        packed = [packs([rows[k] for k in share], self._pass_tokens, one, likelihood.padded) for share in shares]
        mine = packed[parallel.rank()]
        try:
            for part in mine:
                yield micro_batch(part, table, self.device, one), False
            if self._skeleton is not None:
                for _ in range(max(map(len, packed)) - len(mine)):
                    yield micro_batch([Row([0, 0], [TrainedToken(0, 0, 0)])], table, self.device, one), True
        finally:
            likelihood.rest()

    @torch.no_grad()
    def _read(
        self, samples: Sequence[Sample], table: StreamTable, likelihood: TokenLikelihood, hidden: bool = False
    ) -> Tensor:
        """What a model says of the trained tokens, shape (P, ...), on the CPU, in the order of samples and tokens."""
        known: list[tuple[Tensor, Tensor]] = []
        for batch, idle in self._passes(samples, table, likelihood):
            with _passing(batch):
                found_P = likelihood(batch, hidden)
            if not idle:
                known.append((batch.index_P.cpu(), found_P.cpu()))
        known = parallel.gather(known)
        if not known:
            return torch.zeros(0)
        index_P, found_P = (torch.cat(parts) for parts in zip(*known, strict=True))
        return found_P[index_P.argsort()]

    def logprobs(self, samples: Sequence[Sample], likelihood: TokenLikelihood | None = None) -> list[list[float]]:
        """Log-probability of every sampled token of every sample under the policy as it is now (or under another
        model). All ranks must ask for it."""
        found_P = self._read(samples, StreamTable(samples, everything=True), likelihood or self._likelihood)
        return [part.tolist() for part in found_P.split([len(s.sampled_ids) for s in samples])]

    def _held_logprobs(self, samples: Sequence[Sample], name: str) -> list[list[float]]:
        """The same under a policy that the loss holds on to, by its stream.

        Raises:
            ConfigError: there is none.
        """
        if name in self._held:
            return self.logprobs(samples, self._held[name])
        if self.config.lora is None or name != REFERENCE:
            raise ConfigError(
                f"loss {self.loss.type_name()} needs a reference policy, and the learner's first loss needed none: "
                "give the learner a reference when it is made"
            )
        with without_adapters(self.model):
            return self.logprobs(samples)

    def with_streams(self, samples: Sequence[Sample], names: Iterable[str]) -> Sequence[Sample]:
        """Copies of samples with the streams that only the learner can make, as its weights are now; any other name
        has to be that of a stream of the credit.

        Raises:
            ConfigError: neither the credit gives a stream of that name nor can the learner make it.
        """
        makers = {PROXIMAL: self.logprobs, **{name: partial(self._held_logprobs, name=name) for name in PREFIXES}}
        for name in sorted(names):
            if name in makers:
                values = makers[name](samples)
                samples = [replace(s, streams=s.streams | {name: v}) for s, v in zip(samples, values, strict=True)]
            elif not all(name in s.streams for s in samples):
                raise ConfigError(
                    f"loss {self.loss.type_name()} needs the stream {name!r}, which the credit does not give and the "
                    f"learner cannot make (it makes {', '.join(makers)}); take a credit that gives it"
                )
        return samples

    def features(self, samples: Sequence[Sample]) -> Tensor:
        """The policy's last hidden state before every sampled token of an advantage other than 0, in the order of
        samples and tokens, without gradient: shape (P, D), float32, on the CPU. All ranks must ask for it.

        Raises:
            ModelError: the model does not say what makes its hidden states.
        """
        return self._read(samples, StreamTable(samples), self._likelihood, hidden=True)

    @doing("taking an optimiser step", "set learner.lora={}, or weights=bfloat16")
    def step(self, samples: Sequence[Sample]) -> dict[str, float]:
        """One optimiser step on all of `samples`, at least one.

        Returns:
            `loss`, `grad_norm` (before clipping), `lr`, `tokens` (trained), `skipped` (1 where the step changed
            nothing), the metrics of the loss (`methods.losses.PolicyDrift`), and the losses of the model's own.

        Raises:
            RunError: the tenth step in a row without a finite gradient.
        """
        lr = self.lr(self.steps)
        if self.loss.depends_on_policy:
            samples = self.loss.reweigh(samples, self.logprobs(samples))
        loss, found = self.accumulate(samples)
        trained = [p for p in self.parameters.values() if p.grad is not None]
        norm = parallel.full(nn.utils.clip_grad_norm_(trained, self.config.clip)).item() if trained else 0.0
        finite = math.isfinite(loss) and math.isfinite(norm)
        self.steps += 1
        if finite:
            for group in self.optimiser.param_groups:
                group["lr"] = torch.tensor(lr) if isinstance(group["lr"], Tensor) else lr
            self.optimiser.step()
            if self._own is not None:
                self._own.stepped()
            self._skipped_in_a_row = 0
        else:
            self.skipped += 1
            self._skipped_in_a_row += 1
            if self._skipped_in_a_row >= PATIENCE:
                raise RunError(
                    f"{PATIENCE} steps in a row had no finite gradient (last loss {loss}); the last checkpoint "
                    "is good: resume from it with a lower learner.lr or learner.dtype = 'float32'"
                )
        self.optimiser.zero_grad()
        return {"loss": loss, "grad_norm": norm, "lr": lr, "skipped": int(not finite), **found}

    def update(
        self,
        samples: Sequence[Sample],
        rng: random.Random,
        progress: Callable[[int, int], None] | None = None,
        stepped: Callable[[int, int, dict[str, float]], None] | None = None,
    ) -> dict[str, Any]:
        """Trains on `samples` for `config.epochs`: shuffled, cut into steps of about `config.batch_samples`.

        What is shuffled are `batching.units`: the turns of an episode whose context grows, and all that shares enough
        of a prompt with one another, such as the siblings of a group, stay together in one step.

        Args:
            samples: what is trained on.
            rng: shuffles.
            progress: called with (steps done, all).
            stepped: called after each step with (turns in it, steps in all, what `step` returned).

        Returns:
            means over the finite steps of `loss` and `grad_norm` (0 without any), the last `lr`, and counts:
            `trained_turns`, `trained_tokens` (both of one epoch times the epochs), `steps`, `skipped`. Also the metrics
            of the loss: means over the finite steps, of `ratio_max` the largest; and `sampling_gap`, the mean absolute
            difference between the log-probabilities of the first step's tokens now and when they were sampled.

        Raises:
            ConfigError: the loss needs a stream that cannot be made (see `with_streams`).
        """
        c = self.config
        ready = self.with_streams(samples, self.loss.needs)
        table = StreamTable(ready, self.loss.coefficients(ready), everything=self.loss.depends_on_policy)
        together = units(ready, table, self._branch_tokens(self._likelihood), c.batch_samples)
        batches = [b for _ in range(c.epochs) for b in steps_of(shuffled(together, rng), c.batch_samples)]
        done: list[dict[str, float]] = []
        before = [] if c.outer is None else [p.detach().clone() for p in self.parameters.values()]
        for n, batch in enumerate(batches, 1):
            self._unmoved = n == 1
            done.append(self.step(batch))
            if stepped is not None:
                stepped(len(batch), len(batches), done[-1])
            if progress is not None:
                progress(n, len(batches))
        if c.outer is not None:
            with torch.no_grad():
                for p, old in zip(self.parameters.values(), before, strict=True):
                    p.lerp_(old, 1 - c.outer)
        finite = [d for d in done if not d["skipped"]]
        names = dict.fromkeys(name for d in finite for name in d if name not in STEP_FIELDS)
        found = {name: [d[name] for d in finite if name in d] for name in names}
        return {
            "loss": float(np.mean([d["loss"] for d in finite])) if finite else 0.0,
            "grad_norm": float(np.mean([d["grad_norm"] for d in finite])) if finite else 0.0,
            "lr": done[-1]["lr"] if done else self.lr(self.steps),
            "trained_turns": len(samples) * c.epochs,
            "trained_tokens": sum(int(d["tokens"]) for d in done),
            "steps": len(done),
            "skipped": len(done) - len(finite),
            **{name: max(values) if name == "ratio_max" else float(np.mean(values)) for name, values in found.items()},
        }

    @torch.no_grad()
    def move_reference(self, iteration: int) -> None:
        """Moves what the loss holds on to as its anchors say, after the update of an iteration.

        Raises:
            ConfigError: the policy is trained by adapters, and its reference is the model without them.
        """
        for name, anchor in self.loss.anchors.items():
            if not (share := anchor.step(iteration)):
                continue
            if name not in self._held:
                raise ConfigError(
                    "loss.kl.anchor moves the reference, and with learner.lora the reference is the model without "
                    "adapters, which stays: leave out the anchor, or train the weights"
                )
            for mine, theirs in zip(self._held[name].parameters(), self.model.parameters(), strict=True):
                mine.lerp_(theirs, share)
            self._moved.add(name)

    def state(self) -> tuple[dict[str, Tensor], dict[str, float]]:
        """All that an exact resume needs besides the weights of the model that was given: tensors (the moments, and
        adapters) and numbers, for safetensors and JSON. All ranks must ask for it. Whole moments are twice the weights,
        so they stand in the machine's memory."""
        tensors = {
            f"{key}/{name}": parallel.full(value.detach()).cpu()
            for name, p in self.parameters.items()
            for key, value in self._plain(self.optimiser.state.get(p, {})).items()
        }
        if self.config.lora is not None:
            tensors |= {f"adapter/{name}": parallel.full(p.detach()) for name, p in self.parameters.items()}
        for held in sorted(self._moved):
            tensors |= {
                f"{PREFIXES[held]}{name}": parallel.full(p.detach())
                for name, p in self._held[held].model.named_parameters()
            }
        return tensors, {"steps": self.steps, "skipped": self.skipped, "skipped_in_a_row": self._skipped_in_a_row}

    def load_state(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """Takes back what `state` gave.

        Raises:
            RunError: it belongs to another model.
        """
        moved = {k: v for k, v in tensors.items() if k.startswith(tuple(PREFIXES.values()))}
        tensors = {k: v for k, v in tensors.items() if k not in moved}
        self._moved = {held for held, prefix in PREFIXES.items() if any(k.startswith(prefix) for k in moved)}
        if self._moved - self._held.keys():
            raise RunError("the checkpoint has a reference policy, and this learner has none; resume with its recipe")
        for held in self._moved:
            for name, p in self._held[held].model.named_parameters():
                p.detach().copy_(parallel.like(moved[f"{PREFIXES[held]}{name}"], p))
        adapters = ("adapter",) if self.config.lora is not None else ()
        kinds = MOMENTS + SCALES + adapters
        known = {f"{key}/{name}" for name in self.parameters for key in kinds}
        strange = sorted(set(tensors) - known)
        if strange:
            raise RunError(f"optimiser state of another model: {strange[0]!r} is no parameter of this one")
        self.optimiser.state.clear()
        for name, p in self.parameters.items():
            for key in adapters:
                value = tensors.get(f"{key}/{name}")
                if value is None or value.shape != p.shape:
                    raise RunError(f"the checkpoint has no adapter {name!r} of shape {tuple(p.shape)}")
                p.detach().copy_(parallel.like(value, p))
            found = {key: tensors[f"{key}/{name}"] for key in MOMENTS + SCALES if f"{key}/{name}" in tensors}
            if found:
                self.optimiser.state[p] = self._taken(found, p, name)
        try:
            self.steps, self.skipped = int(numbers["steps"]), int(numbers["skipped"])
            self._skipped_in_a_row = int(numbers["skipped_in_a_row"])
        except (KeyError, TypeError, ValueError, OverflowError) as e:
            raise RunError(f"optimiser state is damaged: {type(e).__name__} {e}") from e
        if not 0 <= self._skipped_in_a_row <= self.skipped <= self.steps:
            raise RunError(
                f"optimiser state is damaged: {self._skipped_in_a_row} steps in a row without a finite gradient, of "
                f"{self.skipped}, of {self.steps} steps"
            )


def _passing(batch: MicroBatch) -> AbstractContextManager[None]:
    """Says what is being done with a micro-batch."""
    rows, length = batch.ids_B_L.shape
    return doing(
        f"training on a pass of {rows * length} tokens ({rows} {'row' if rows == 1 else 'rows'})",
        f"set learner.micro_tokens={max(1, rows * length // 2)}, or learner.checkpointing=true",
    )
