"""Measures a GRPO step of TRL in its own environment: run by that environment's Python, imports nothing of Longstride.

Reads one JSON object from standard input: `shape` (of a Qwen3 model), `prompts` (lists of ids, `groups` a step),
`groups`, `siblings`, `new` (tokens), `lr`, `threads`, `rows` (of a micro-batch), `device` (`cpu` or `cuda`), `dtype`
(of arithmetic). Its last line is a JSON object: `seconds` (of each step but the first, which warms up), `parameters`,
`versions`. What always holds: every completion has exactly `new` tokens, or it ends with an error.
"""

import json
import os
import sys
import tempfile
import time


def main():
    asked = json.load(sys.stdin)
    os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", OMP_NUM_THREADS=str(asked["threads"]))
    import torch
    from datasets import Dataset  # pyright: ignore[reportMissingImports]
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(asked["threads"])
    words = ["<bos>", "<eos>", "<pad>", *(f"w{i}" for i in range(3, asked["shape"]["vocab_size"]))]
    core = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<pad>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<bos>", eos_token="<eos>", pad_token="<pad>", unk_token="<pad>"
    )
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(Qwen3Config(**asked["shape"], bos_token_id=0, eos_token_id=1, pad_token_id=2))
    model.generation_config.eos_token_id = None
    lengths, marks = set(), []

    def reward(completion_ids, **_):
        lengths.update(map(len, completion_ids))
        return [sum(i % 2 for i in ids) / len(ids) for ids in completion_ids]

    class Clock(TrainerCallback):
        def on_step_end(self, *_, **__):
            marks.append(time.perf_counter())

    rows = [{"prompt": " ".join(words[i] for i in ids)} for ids in asked["prompts"]]
    steps, of_step = len(rows) // asked["groups"], asked["groups"] * asked["siblings"]
    at_once = min(asked["rows"], of_step)
    with tempfile.TemporaryDirectory() as folder:
        settings = GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=at_once,
            gradient_accumulation_steps=of_step // at_once,
            num_generations=asked["siblings"],
            max_completion_length=asked["new"],
            max_steps=steps,
            generation_kwargs={"min_new_tokens": asked["new"]},
            learning_rate=asked["lr"],
            report_to=[],
            use_cpu=asked["device"] == "cpu",
            bf16=asked["dtype"] == "bfloat16",
            logging_steps=1,
            save_strategy="no",
            disable_tqdm=True,
            temperature=1.0,
            beta=0.0,
            gradient_checkpointing=False,
            shuffle_dataset=False,
        )
        GRPOTrainer(
            model=model,
            reward_funcs=reward,
            args=settings,
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            callbacks=[Clock()],
        ).train()
    if lengths != {asked["new"]}:
        sys.exit(f"completions have {sorted(lengths)} tokens, not {asked['new']}")
    from importlib.metadata import version

    found = {
        "seconds": [b - a for a, b in zip(marks, marks[1:], strict=False)],
        "parameters": sum(p.numel() for p in model.parameters()),
        "versions": {name: version(name) for name in ("trl", "transformers", "torch", "accelerate")},
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
