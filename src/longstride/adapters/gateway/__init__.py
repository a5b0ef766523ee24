"""Programs that call a chat API, as environments: a request is a turn, and what the policy samples is the answer."""
