"""A program that plays `one_page` through a gateway, with nothing but the standard library."""

import json
import os
import urllib.request

ADDRESS, KEY = os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
messages = [{"role": "user", "content": f"{os.environ['LONGSTRIDE_GOAL']} home [1] red lamp"}]
while True:
    body = json.dumps({"messages": messages}).encode()
    request = urllib.request.Request(f"{ADDRESS}/chat/completions", body, {"authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        said = json.load(answer)["choices"][0]["message"]["content"]
    if len(said) % 4 < 2:
        print(("yes", "no")[len(said) % 4])
        break
    messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "home [1] blue lamp"}]
