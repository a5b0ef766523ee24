"""The words of the embedded sites.

What always holds: every word is one token of the shipped tokenizer; an entity's name is an adjective and a noun, and
the pairs are cut into names for training sites and names for held-out sites, so that no name is ever seen in both while
every word is.
"""

import functools
import zlib


def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


ADJECTIVES = words(
    "amber ancient arctic autumn bitter bold brave bright calm clever cosmic crisp curly dapper daring dusty "
    "eager early fancy fresh gentle giant golden grand happy hidden hollow humble icy jolly lively lone lucky "
    "lunar mellow misty noble polar proud quiet rapid royal rustic silent sleepy stormy sunny tiny velvet wild"
)
NOUNS = words(
    "anchor arrow badger beacon bridge candle canyon castle cloud comet compass copper cottage desert dragon "
    "eagle ember falcon feather forest garden glacier globe hammer harbor island lantern maple meadow meteor "
    "mirror mountain ocean orchid otter palace panda pebble phoenix pillar planet raven river rocket saddle "
    "shadow sparrow temple thunder tiger tower tulip turtle valley violin walnut willow window"
)
COLORS = words("red blue green white black yellow purple orange")
MATERIALS = words("wood steel glass cotton leather stone paper rubber")
VIEWS = words("sea lake park street roof square")
MEALS = words("breakfast dinner brunch picnic buffet none")
TOPICS = words("advice news story question joke review")
MOODS = words("cheerful angry puzzled thankful worried excited")
SYMBOLS = words("star crown lion rose wave sword leaf bell")
ERAS = words("bronze iron feudal modern classic gothic")
CITIES = words("oslo paris cairo lima delhi tokyo quito accra turin boston dublin vienna")
COUNTRIES = words("norway france egypt peru india japan ecuador ghana italy america ireland austria")
LANGUAGES = words("french arabic spanish hindi japanese norse english german")
ROLES = words("farmer doctor teacher pilot painter baker sailor judge")
FIELDS = words("biology physics history music poetry geometry")
PEOPLE = words(
    "maria ahmed chen olga pedro aisha lars nina omar yuki ravi elena tomas greta hugo zara ivan leila paul rosa "
    "felix marta simon clara"
)
FIRMS = words(
    "northwind bluepeak redfox ironoak sunmill clearbay highfield stonegate whitepine oldport greenway starlane"
)
REPLIES = words("thanks welcome agreed sorry congratulations hello")


@functools.cache
def names(held_out: bool) -> frozenset[str]:
    """All names for training sites, or all for held-out ones: one pair in five is held out."""
    pairs = [f"{a} {n}" for a in ADJECTIVES for n in NOUNS]
    return frozenset(p for p in pairs if (zlib.crc32(p.encode()) % 5 == 0) == held_out)
