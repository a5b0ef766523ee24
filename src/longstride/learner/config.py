"""The learner's numbers, apart from the learner: a recipe is read and printed without torch."""

from typing import Literal, Self

from longstride.core.component import Component
from longstride.core.numbers import Count, CountOrZero, Decay, Positive, Share, Weight
from longstride.models.kernels import Kernels, settled
from longstride.models.lora import LoRA


class LearnerConfig(Component):
    """The optimiser step. Defaults are for a model of about a million parameters."""

    lr: Positive = 5e-4
    """Peak learning rate of AdamW."""
    betas: tuple[Decay, Decay] = (0.9, 0.95)
    """Decay of AdamW's first and second moment."""
    weight_decay: Weight = 0.01
    """Decoupled weight decay, on every parameter."""
    clip: Positive = 1.0
    """Largest norm of the gradient of a step."""
    warmup_steps: CountOrZero = 20
    """Optimiser steps of linear warm-up."""
    decay_steps: Count | None = None
    """Optimiser step at which the cosine ends; None keeps the rate constant after the warm-up."""
    min_lr_ratio: Share = 0.1
    """Share of the peak that is left after the cosine."""
    epochs: CountOrZero = 1
    """Passes over what an iteration trains on; 0 trains nothing, and only rolls out."""
    outer: Share | None = None
    """The part of what an iteration changed that is kept after its steps, which are an inner loop then (epsilon of
    Reptile, Nichol et al., 2018, arXiv 1803.02999): where an iteration has tasks of one kind, what is left is near to
    what is good for each kind. The moments of the optimiser go on as they are. None: all of it, as with 1."""
    batch_samples: Count = 128
    """Samples (turns) per optimiser step, about: turns of an episode whose context grows, and siblings that share a
    row, stay in one step, however many they are."""
    micro_tokens: Count = 8192
    """Padded tokens per forward pass, at most: memory, never the result. Native kernels take fewer."""
    dtype: Literal["auto", "bfloat16", "float32"] = "auto"
    """Arithmetic of the forward pass (autocast); weights keep their own type. `auto` is float32 where its kernels are
    native, else bfloat16 where the device has instructions for it: imitated, it would be at half the speed."""
    kernels: Kernels = "auto"
    """What computes a pass on a CPU in float32."""
    threads: Count | Literal["auto"] = 1
    """Threads that share the micro-batches of a step, a core each, where its kernels are native. `auto`: one a core, 8
    at most. The last bits of a result depend on the number: `run.toml` has that of a recipe's `learner`; cloning counts
    cores as it begins."""
    checkpointing: bool = False
    """Gradient checkpointing: layers keep their inputs alone and are computed again in the backward pass. Less memory,
    a third more work, the same result."""
    float32_head: bool = False
    """The head computes in float32 whatever `dtype` is: log-probabilities nearer to the sampler's (MiniMax-M1, arXiv
    2506.13585, section 3.2), for some of the speed."""
    packed: bool | Literal["auto"] = "auto"
    """Rows stand one behind the other, without padding; the same result. `auto` is on a GPU: padding suits a CPU."""
    head: Literal["torch", "liger"] = "torch"
    """What computes log-probabilities over a large vocabulary: torch in parts, or Liger's kernel, on CUDA. Where a loss
    has an entropy bonus it is torch, for Liger's kernel gives no entropy."""
    compile: bool = False
    """Layers are compiled (torch.compile), for a GPU: the same result up to rounding, after a slow first step."""
    optimiser: Literal["adamw", "adamw_8bit"] = "adamw"
    """AdamW, or AdamW whose two moments take a byte a value each (torchao), at some noise in its steps."""
    lora: LoRA | None = None
    """Trains low-rank adapters in place of the weights."""
    sharded: bool = False
    """With several processes (torchrun): parameters, gradients and moments are cut among them (FSDP2), where otherwise
    each holds all of them."""

    def settled(self, device: str = "cpu") -> Self:
        """A copy in which what depends on this machine is decided: what a run keeps and goes on with."""
        from longstride.engines.local_processes import cores

        decided = self.replace(threads=min(cores(), 8)) if self.threads == "auto" else self
        return decided.replace(kernels=settled(self.kernels) if device == "cpu" else "torch")
