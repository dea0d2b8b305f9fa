"""The hash of an id in lower case, as Java 17 computes it: `id.toLowerCase(ROOT).hashCode()`.

Letter by letter it is computed natively. Only the lower case of a capital sigma depends on its
place: it is a final sigma at the end of a word, after another letter with case. What a word is
comes from the word rules of Java's BreakIterator, not from Unicode's definition of a final sigma:
it may contain digits and single punctuation marks, as in "a-b" and "a.b". Java 17 has Unicode 13,
and also ends a word after a character outside of the basic plane, unless the text begins with it.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import Final

from aerotape import _native

CAPITAL_SIGMA: Final = "Σ"
_SIGMA: Final = "\u03c3"
_FINAL_SIGMA: Final = "\u03c2"
_LAST_OF_BASIC_PLANE: Final = "\uffff"
# Characters of Unicode 14 to 17; of those outside of the basic plane, which end a word, that have
# case.
_NEW: Final = re.compile(
    "[\u0870-\u089f\u08b5\u08c8-\u08d2\u0c3c\u0c5c\u0c5d\u0cdc\u0cdd\u0cf3\u0ece\u170d\u1715\u171f"
    "\u180f\u1ac1-\u1aeb\u1b4c-\u1b4f\u1b7f\u1c89\u1c8a\u1dfa\u20c0\u20c1\u2c2f\u2c5f\u2e5d"
    "\u9ffd-\u9fff\ua7c0\ua7c1\ua7cb-\ua7dc\ua7f1-\ua7f4"
    "\U00010570-\U000105bc\U00010d50-\U00010d85\U00016ea0-\U00016ed3\U0001df00-\U0001df2a]"
)
# Han, Hiragana, Katakana and their marks: words without other letters, and without case.
_EAST_ASIAN: Final = re.compile(
    "[\u3005\u4e00-\u9fa5\uf900-\ufa2d\u3041-\u3094\u309b-\u309e\u30a1-\u30fe]"
)
# Classes of characters: (l)etter, (n)umber, (e)nclosing or other mark, (f)ormat character, which is
# ignored, punctuation within (w)ords, within n(u)mbers, within (b)oth, or (p)receding numbers too,
# (c)urrency and others preceding numbers, (d)anda, and (x) for all others.
_CLASSES: Final = {
    "\u00ad": "w", "\u2027": "w", ".": "p", '"': "b", "'": "b", ",": "u", "\u066b": "u", "#": "c",
    "\u00a2": "x", "\u0964": "d", "\u0965": "d", "\u1734": "e",
}  # fmt: skip
_CLASSES_OF_CATEGORIES: Final = {
    "Cf": "f", "Mn": "e", "Me": "e", "Mc": "l", "Pd": "w", "Pc": "w", "Sc": "c",
}  # fmt: skip
_WORD: Final = "(?:l[ef]*)+(?:[wpb]f*(?:l[ef]*)+)*(?:df*)?"
_NUMBER: Final = "(?:n[ef]*)+(?:[upb]f*(?:n[ef]*)+)*"
_WORDS: Final = re.compile(f"(?:(?:[pc]f*)?{_NUMBER})?{_WORD}(?:{_NUMBER}{_WORD})*(?:{_NUMBER})?|.")
# Characters with case that are no letters, or letters without upper and lower case.
_CASED: Final = re.compile(
    "[\u02b0-\u02b8\u02c0\u02c1\u02e0-\u02e4\u0345\u037a\u1d2c-\u1d61\u2160-\u217f\u24b6-\u24e9]"
)


def lower_case_hash(text: str) -> int:
    """Return Java's hash code of a text in lower case, 32 bits with sign."""
    return _native.lower_case_hash(_with_small_sigmas(text) if CAPITAL_SIGMA in text else text)


def _with_small_sigmas(text: str) -> str:
    """Replace capital sigmas by small ones."""
    letters = list(text)
    begins = {word.start() for word in _WORDS.finditer("".join(map(_class, text)))}
    begins |= {at + 1 for at, letter in enumerate(text) if at and letter > _LAST_OF_BASIC_PLANE}
    for begin, end in pairwise(sorted(begins | {len(text)})):
        cased = [at for at in range(begin, end) if _is_cased(text[at])]
        for at in cased:
            if text[at] == CAPITAL_SIGMA:
                letters[at] = _FINAL_SIGMA if cased[0] < at == cased[-1] else _SIGMA
    return "".join(letters)


def _class(letter: str) -> str:
    if _EAST_ASIAN.match(letter) or _NEW.match(letter):
        return "x"
    category = unicodedata.category(letter)
    found = _CLASSES.get(letter) or _CLASSES_OF_CATEGORIES.get(category)
    return found or {"L": "l", "N": "n"}.get(category[0], "x")


def _is_cased(letter: str) -> bool:
    if _NEW.match(letter):
        return False
    return unicodedata.category(letter) in ("Lu", "Ll", "Lt") or _CASED.match(letter) is not None
