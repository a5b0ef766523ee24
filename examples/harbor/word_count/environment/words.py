def count_words(text: str) -> dict[str, int]:
    counts = {}
    for word in text.split(" "):
        counts[word] = 1
    return counts
