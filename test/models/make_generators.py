"""Makes `gen-*`, small language models with random, seeded weights in the layout of Hugging Face's ONNX exports. They
say nonsense, but the same nonsense from the same start, and what they say depends on every token before it.

gen-mha            attention with as many key heads as query heads; learned positions, fed as position_ids
gen-gqa-nopos      grouped queries and RoPE, no position_ids (counted in attention_mask), several ends of text
gen-mqa-fp16       one key head; weights, cache and logits are FP16, and there is no other file
gen-relative       positions are the cache's length and what follows: a row padded on the left gets wrong answers
gen-logits-to-keep an input num_logits_to_keep, and weights in a file of their own
gen-quantized      MatMulInteger, as ONNX Runtime's dynamic quantization gives
gen-cheap          costs next to nothing, for measuring everything around the model
gen-wide           22 million parameters, more than any cache of a processor holds, computed at load: for measuring batches
gen-pill           gen-cheap, but the token <|crash|> kills the process (on x86-64, as in pill)

All have the same tokenizer: bytes, some merges and the special tokens, which the weights avoid, so that nothing ends
before it is told to. The seeds were picked for greedy text that repeats itself little.

Run with /usr/bin/python3 and Debian's python3-onnx (1.12) and python3-numpy. Writes the directories beside this file.
"""

import json
import sys
from pathlib import Path
from typing import List, Optional

import numpy as np
import onnx

sys.dont_write_bytecode = True
from decoder import Decoder, Shape

HERE = Path(__file__).resolve().parent

SPECIAL = ["<s>", "</s>", "<|end|>", "<|user|>", "<|assistant|>"]
BOS, EOS, TURN = 0, 1, 2
CRASH = "<|crash|>"

# Pairs that become one token; "_" is a space. The last ones make an é, and half and three quarters of an emoji.
MERGES = """
h|e _|t i|n _|a r|e o|n _t|he _|s e|r _|w a|t _|o n|d _|b _a|nd o|u e|n _|c _|f i|s o|r _|m _|p in|g _t|o _o|f _|d _|h
a|l e|d _|l l|l _|n s|t _|g _|in _|he _|is e|s a|n i|t _|it _|y _y|ou a|s _w|as l|y v|e c|h _|I _f|or a|r l|e _|on
o|w c|k \xc3|\xa9 \xf0|\x9f \xf0\x9f|\x98
"""

CHAT = (
    "{{ bos_token }}"
    "{% for message in messages %}"
    "{% if message['role'] == 'user' %}<|user|>{{ message['content'] }}<|end|>"
    "{% elif message['role'] == 'assistant' %}<|assistant|>{{ message['content'] }}<|end|>"
    "{% elif message['role'] == 'system' %}{{ message['content'] }}<|end|>"
    "{% else %}{{ raise_exception('Unknown role: ' + message['role']) }}"
    "{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def byte_symbols() -> List[str]:
    """GPT-2's printable stand-in for each byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte if byte in printable else 256 + others.index(byte)) for byte in range(256)]


SYMBOLS = byte_symbols()
PAIRS = [tuple(half.replace("_", " ") for half in pair.split("|")) for pair in MERGES.split()]
# What each token says, in Latin-1. Byte b is token len(SPECIAL) + b.
TEXTS = [chr(byte) for byte in range(256)] + [left + right for left, right in PAIRS]


def in_symbols(text: str) -> str:
    return "".join(SYMBOLS[ord(character)] for character in text)


def bias(extra: int) -> np.ndarray:
    """Specials as good as never; control characters and the bytes of other scripts now and then."""

    def of(text: str) -> float:
        if len(text) > 1 or text == "\n" or " " <= text <= "~":
            return 0
        return -3 if text >= "\x80" else -6

    return np.array([-20] * len(SPECIAL) + [of(text) for text in TEXTS] + [-20] * extra)


def tokenizer(extra: List[str]) -> dict:
    vocabulary = {token: id for id, token in enumerate([*SPECIAL, *map(in_symbols, TEXTS)])}
    added = [*enumerate(SPECIAL), *enumerate(extra, len(vocabulary))]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    first = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    texts = [{"Sequence": {"id": name, "type_id": type_id}} for type_id, name in enumerate("AB")]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": id, "content": content, **flags} for id, content in added],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [first, texts[0]],
            "pair": [first, *texts],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [BOS], "tokens": ["<s>"]}},
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
            "vocab": vocabulary,
            "merges": [" ".join(map(in_symbols, pair)) for pair in PAIRS],
        },
    }


def config(shape: Shape, kind: str) -> dict:
    """As the families of models name the same things."""
    same = {"vocab_size": len(shape.bias), "bos_token_id": BOS, "eos_token_id": EOS}
    if kind == "gpt2":
        sizes = {"n_embd": shape.hidden, "n_layer": shape.layers, "n_head": shape.heads, "n_positions": shape.context}
    else:
        sizes = {
            "hidden_size": shape.hidden,
            "num_hidden_layers": shape.layers,
            "num_attention_heads": shape.heads,
            "max_position_embeddings": shape.context,
        }
    if kind in ("llama", "gemma"):
        sizes["num_key_value_heads"] = shape.kv_heads
    if shape.head * shape.heads != shape.hidden:
        sizes["head_dim"] = shape.head
    names = {"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM", "gemma": "GemmaForCausalLM", "opt": "OPTForCausalLM"}
    dtype = "float16" if shape.half else "float32"
    return {"model_type": kind, "architectures": [names[kind]], "torch_dtype": dtype, **sizes, **same}


def write_json(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def save(
    directory: Path,
    shape: Shape,
    kind: str,
    file: str = "model.onnx",
    chat: Optional[str] = None,
    ends: object = EOS,
    extra: List[str] = [],
    outside: bool = False,
) -> None:
    (directory / "onnx").mkdir(parents=True, exist_ok=True)
    write_json(directory / "config.json", config(shape, kind))
    write_json(directory / "generation_config.json", {"bos_token_id": BOS, "eos_token_id": ends, "pad_token_id": EOS})
    write_json(directory / "tokenizer.json", tokenizer(extra))
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>", "unk_token": None}
    settings = {
        **names,
        "add_bos_token": True,
        "clean_up_tokenization_spaces": False,
        "model_max_length": shape.context,
        "tokenizer_class": "PreTrainedTokenizerFast",
        **({} if chat is None else {"chat_template": chat}),
    }
    write_json(directory / "tokenizer_config.json", settings)
    model = Decoder(shape).build()
    data = directory / "onnx" / f"{file}_data"
    data.unlink(missing_ok=True)  # onnx.save appends
    onnx.save(
        model,
        str(directory / "onnx" / file),
        **({"save_as_external_data": True, "location": data.name, "size_threshold": 1024} if outside else {}),
    )


def cheap(name: str, seed: int, words: np.ndarray, **more: object) -> Shape:
    sizes = {"hidden": 8, "layers": 1, "heads": 1, "kv_heads": 1, "head": 4, "context": 65536}
    return Shape(name, seed, words, **{**sizes, "places": "sine", "full": False, **more})


def main() -> None:
    words = bias(0)

    def make(shape: Shape, kind: str, **more: object) -> None:
        save(HERE / shape.name, shape, kind, **more)

    make(Shape("gen-mha", 1, words), "gpt2", chat=CHAT)
    make(
        Shape("gen-gqa-nopos", 105, words, heads=8, kv_heads=2, head=8, places="rope", positions="mask"),
        "llama",
        chat=CHAT,
        ends=[EOS, TURN],
    )
    mqa = Shape("gen-mqa-fp16", 207, words, heads=4, kv_heads=1, places="rope", half=True)
    make(mqa, "gemma", file="model_fp16.onnx")
    make(Shape("gen-relative", 203, words, positions="past"), "opt")
    make(Shape("gen-logits-to-keep", 201, words, hidden=32, heads=2, kv_heads=2, keep=True), "gpt2", outside=True)
    make(Shape("gen-quantized", 209, words, quantized=True), "gpt2", file="model_quantized.onnx")
    make(cheap("gen-cheap", 102, words), "llama")
    wide = {"hidden": 768, "layers": 6, "heads": 12, "kv_heads": 2, "head": 64, "places": "rope", "computed": True}
    make(Shape("gen-wide", 301, words, **wide), "llama")
    pill = bias(1)
    make(cheap("gen-pill", 207, pill, poison=len(pill) - 1), "llama", extra=[CRASH])


if __name__ == "__main__":
    main()
