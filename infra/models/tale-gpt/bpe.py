"""A byte-level BPE like GPT-2's: training, encoding, and the files tokenizer.json and
tokenizer_config.json.

Written out here since nothing but numpy, torch and onnx is needed to make the model. Every byte is
a symbol of its own, so any text can be encoded; the merges come from the tales.
"""

import re
import sys
import unicodedata
from collections import Counter, defaultdict

SPECIAL = ["<pad>", "<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]
PAD, START, STOP, END = 0, 1, 2, 6

# Content may be a string or a list of parts, as OpenAI's clients send content; "developer" is
# another name for "system".
CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages %}"
    "{% set role = 'system' if message['role'] == 'developer' else message['role'] %}"
    "{% if role not in ['system', 'user', 'assistant'] %}"
    "{{ raise_exception('tale-gpt knows the roles system, user and assistant only') }}"
    "{% endif %}"
    "{{ '<|' + role + '|>\\n' }}"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% elif message['content'] %}"
    "{% for part in message['content'] %}{% if part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}"
    "{% endif %}"
    "{{ '<|end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"
)


def category(initial: str) -> str:
    """The inside of a character class for a Unicode category: Python's re has no \\p{L}."""
    points = [c for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c))[0] == initial]
    ranges, first = [], points[0]
    for point, following in zip(points, [*points[1:], -1]):
        if following != point + 1:
            ranges.append(f"\\U{first:08x}-\\U{point:08x}")
            first = following
    return "".join(ranges)


L, N = category("L"), category("N")
PIECE = re.compile(rf"'s|'t|'re|'ve|'m|'ll|'d| ?[{L}]+| ?[{N}]+| ?[^\s{L}{N}]+|\s+(?!\S)|\s+")
IN_SPECIAL = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")")


def byte_symbols() -> list[str]:
    """GPT-2's printable stand-in for each byte."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    symbols, spare = {}, 256
    for byte in range(256):
        if byte in printable:
            symbols[byte] = chr(byte)
        else:
            symbols[byte] = chr(spare)
            spare += 1
    return [symbols[byte] for byte in range(256)]


SYMBOLS = byte_symbols()


def as_symbols(piece: str) -> list[str]:
    return [SYMBOLS[byte] for byte in piece.encode()]


def learn(texts: list[str], size: int) -> list[tuple[str, str]]:
    """The merges of a vocabulary of `size` tokens: again and again the most frequent pair of
    neighbours becomes one."""
    counts = Counter(p for text in texts for part in IN_SPECIAL.split(text) if part not in SPECIAL for p in PIECE.findall(part))
    words = [(as_symbols(piece), count) for piece, count in sorted(counts.items())]
    merges: list[tuple[str, str]] = []
    while len(SPECIAL) + 256 + len(merges) < size:
        pairs: dict[tuple[str, str], int] = defaultdict(int)
        for symbols, count in words:
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += count
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        for symbols, _ in words:
            join(symbols, best)
    return merges


def join(symbols: list[str], pair: tuple[str, str]) -> None:
    i = 0
    while i < len(symbols) - 1:
        if (symbols[i], symbols[i + 1]) == pair:
            symbols[i : i + 2] = ["".join(pair)]
        i += 1


class Tokenizer:
    def __init__(self, merges: list[tuple[str, str]]) -> None:
        self.merges = merges
        self.rank = {pair: i for i, pair in enumerate(merges)}
        self.tokens = [*SPECIAL, *SYMBOLS, *("".join(pair) for pair in merges)]
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.known: dict[str, list[int]] = {}

    def piece(self, piece: str) -> list[int]:
        if piece not in self.known:
            symbols = as_symbols(piece)
            while len(symbols) > 1:
                best = min(zip(symbols, symbols[1:]), key=lambda pair: self.rank.get(pair, len(self.merges)))
                if best not in self.rank:
                    break
                join(symbols, best)
            self.known[piece] = [self.ids[symbol] for symbol in symbols]
        return self.known[piece]

    def encode(self, text: str) -> list[int]:
        """Special tokens in the text are tokens; <s> is not added."""
        ids: list[int] = []
        for part in IN_SPECIAL.split(text):
            if part in SPECIAL:
                ids.append(SPECIAL.index(part))
            else:
                for piece in PIECE.findall(part):
                    ids.extend(self.piece(piece))
        return ids

    def decode(self, ids: list[int]) -> str:
        """The text, without special tokens."""
        symbols = "".join(self.tokens[i] for i in ids if i >= len(SPECIAL))
        return bytes(SYMBOLS.index(symbol) for symbol in symbols).decode(errors="replace")

    def json(self) -> dict:
        """tokenizer.json, as Hugging Face's tokenizers write it."""
        start = {"SpecialToken": {"id": "<s>", "type_id": 0}}
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                {"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
                for i, token in enumerate(SPECIAL)
            ],
            "normalizer": None,
            "pre_tokenizer": byte_level,
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [start, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [start, {"Sequence": {"id": "A", "type_id": 0}}, start, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [START], "tokens": ["<s>"]}},
            },
            "decoder": byte_level,
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": False,
                "vocab": self.ids,
                "merges": [list(pair) for pair in self.merges],
            },
        }  # fmt: skip

    def config(self, longest: int) -> dict:
        """tokenizer_config.json."""
        return {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": longest,
            "add_bos_token": True,
            "add_eos_token": False,
            "bos_token": "<s>",
            "eos_token": "</s>",
            "pad_token": "<pad>",
            "unk_token": None,
            "padding_side": "left",
            "clean_up_tokenization_spaces": False,
            "additional_special_tokens": SPECIAL[3:],
            "added_tokens_decoder": {
                str(i): {"content": token, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
                for i, token in enumerate(SPECIAL)
            },
            "chat_template": CHAT_TEMPLATE,
        }  # fmt: skip
