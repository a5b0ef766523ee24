"""Samples with vLLM in its own environment: run by that environment's Python, imports nothing of Longstride.

Reads a JSON object a line from standard input and answers each by one. The first has the arguments of `vllm.LLM`; every
other one `prompts` (lists of ids) and `new` (how many tokens after each), and is answered by `seconds`. What always
holds: prompt `i` got exactly `new[i]` tokens, sampled at temperature 1 from all of the vocabulary, or it ends with an
error.
"""

import json
import os
import sys
import time


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the library prints is no answer
    os.environ.update(HF_HUB_OFFLINE="1")
    from vllm import LLM, SamplingParams  # pyright: ignore[reportMissingImports]

    llm = LLM(**json.loads(sys.stdin.readline()))
    print("{}", file=answers)
    for line in sys.stdin:
        asked = json.loads(line)
        prompts = [{"prompt_token_ids": ids} for ids in asked["prompts"]]
        wanted = [
            SamplingParams(temperature=1.0, max_tokens=n, ignore_eos=True, detokenize=False) for n in asked["new"]
        ]
        began = time.perf_counter()
        done = llm.generate(prompts, wanted, use_tqdm=False)
        seconds = time.perf_counter() - began
        lengths = [len(found.outputs[0].token_ids) for found in done]
        if lengths != asked["new"]:
            sys.exit(f"completions have other lengths than were asked for: {lengths[:8]}, not {asked['new'][:8]}")
        print(json.dumps({"seconds": seconds}), file=answers)


if __name__ == "__main__":
    main()
