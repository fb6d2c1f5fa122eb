"""Makes `tale-gpt`: trains a tokenizer and a small Llama-like transformer on the tales of tales.py,
and writes both in Hugging Face's layout (config.json, tokenizer.json, onnx/model.onnx and so on)
beside this file.

    make.py tokenizer        learns the merges anew and writes tokenizer.json and tokenizer_config.json
    make.py train [MINUTES]  trains for so long (30), exports, and judges; goes on from a checkpoint if there is one;
                             `again` as the last argument begins a new run with the checkpoint's weights
    make.py export           exports the checkpoint
    make.py judge            tells 40 tales at each of three temperatures, twice, and counts what went wrong

Run with /usr/bin/python3 and Debian's python3-torch (1.13), python3-onnx (1.12), python3-numpy and
libopenblas0-pthread. The checkpoint lies in the directory for temporary files.
"""

import ctypes
import json
import math
import os
import random
import sys
import tempfile
import time
from pathlib import Path

# Two processes with a thread and half of a batch each are several times as fast as a process with
# two threads. On processors with AVX-512, the kernels that OpenBLAS 0.3.21 chooses by itself run at
# a fifth of the speed of these.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
if "avx512f" in Path("/proc/cpuinfo").read_text():
    os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")
# Large tensors keep their memory. Else each step would free it and fault it in again
# (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD).
for _option in (-1, -3):
    ctypes.CDLL(None).mallopt(_option, 2**31 - 1)

import numpy as np
import torch
import torch.multiprocessing
from torch.nn.functional import cross_entropy, silu

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

from bpe import END, IN_SPECIAL, PAD, PIECE, SPECIAL, START, STOP, Tokenizer, learn  # noqa: E402
from export import export  # noqa: E402
from judge import judge  # noqa: E402
from tales import FRIEND_NAMES, GIVEN, NAMES, document  # noqa: E402

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 1280,
    "hidden_size": 192,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 512,
    "rope_theta": 10000.0,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": True,
    "initializer_range": 0.02,
    "bos_token_id": START,
    "eos_token_id": [STOP, END],
    "pad_token_id": PAD,
    "torch_dtype": "float32",
    "use_cache": True,
}
GENERATION = {
    "bos_token_id": START,
    "eos_token_id": [STOP, END],
    "pad_token_id": PAD,
    "do_sample": True,
    "temperature": 0.4,
    "max_length": CONFIG["max_position_embeddings"],
}
CHECKPOINT = Path(tempfile.gettempdir()) / "tale-gpt.pt"
HALF_BATCH = 8
POOL = 16  # batches whose documents are sorted by length together
PEAK_RATE = 3e-3
RECALL = 0.5  # weight of the names ahead

ALL_NAMES = {name for names in (NAMES, GIVEN, FRIEND_NAMES) for some in names.values() for name in some}
HEADS, GROUPS, SIZE = CONFIG["num_attention_heads"], CONFIG["num_key_value_heads"], CONFIG["head_dim"]


class Norm(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(CONFIG["hidden_size"]))

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + CONFIG["rms_norm_eps"]) * self.weight


def linear(inputs: int, outputs: int, scale: float = 1.0):
    layer = torch.nn.Linear(inputs, outputs, bias=False)
    torch.nn.init.normal_(layer.weight, std=scale * inputs**-0.5)
    return layer


def turn(x, cos, sin):
    """Rotary embedding, as in export.py."""
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


class Attention(torch.nn.Module):
    def __init__(self, hidden: int, scale: float) -> None:
        super().__init__()
        self.q_proj, self.o_proj = linear(hidden, HEADS * SIZE), linear(HEADS * SIZE, hidden, scale)
        self.k_proj, self.v_proj = linear(hidden, GROUPS * SIZE), linear(hidden, GROUPS * SIZE)

    def forward(self, x, cos, sin, unseen, cache):
        batch, length, _ = x.shape
        q = turn(self.q_proj(x).view(batch, length, HEADS, SIZE).transpose(1, 2), cos, sin) * SIZE**-0.5
        k = turn(self.k_proj(x).view(batch, length, GROUPS, SIZE).transpose(1, 2), cos, sin)
        v = self.v_proj(x).view(batch, length, GROUPS, SIZE).transpose(1, 2)
        if cache is not None:
            k, v = (torch.cat(both, 2) for both in zip(cache, (k, v))) if cache else (k, v)
            cache[:] = k, v
        scores = q.reshape(batch, GROUPS, -1, SIZE) @ k.transpose(-1, -2)
        scores = scores.view(batch, GROUPS, -1, length, k.shape[2]) + unseen
        mixed = torch.softmax(scores, -1).view(batch, GROUPS, -1, k.shape[2]) @ v
        return self.o_proj(mixed.view(batch, HEADS, length, SIZE).transpose(1, 2).reshape(batch, length, -1))


class Mlp(torch.nn.Module):
    def __init__(self, hidden: int, scale: float) -> None:
        super().__init__()
        inner = CONFIG["intermediate_size"]
        self.gate_proj, self.up_proj, self.down_proj = linear(hidden, inner), linear(hidden, inner), linear(inner, hidden, scale)

    def forward(self, x):
        return self.down_proj(silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        scale = (2 * CONFIG["num_hidden_layers"]) ** -0.5
        self.input_layernorm, self.post_attention_layernorm = Norm(), Norm()
        self.self_attn, self.mlp = Attention(CONFIG["hidden_size"], scale), Mlp(CONFIG["hidden_size"], scale)

    def forward(self, x, *attention):
        x = x + self.self_attn(self.input_layernorm(x), *attention)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = torch.nn.Embedding(CONFIG["vocab_size"], CONFIG["hidden_size"])
        torch.nn.init.normal_(self.embed_tokens.weight, std=CONFIG["hidden_size"] ** -0.5)
        self.layers = torch.nn.ModuleList([Layer() for _ in range(CONFIG["num_hidden_layers"])])
        self.norm = Norm()


class TaleGpt(torch.nn.Module):
    """Named like Hugging Face's Llama, so that the weights have the names everyone knows."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Decoder()

    def forward(self, tokens, halfway: list | None = None, caches: list | None = None):
        """Logits. What the first half of the layers has worked out is appended to `halfway`.
        `caches`, one list for each layer and empty at first, keeps the keys and values for the
        tokens of the next call."""
        length = tokens.shape[1]
        frequencies = CONFIG["rope_theta"] ** (-torch.arange(0, SIZE, 2) / SIZE)
        past = caches[0][0].shape[2] if caches and caches[0] else 0
        angles = torch.arange(past, past + length)[:, None] * frequencies
        unseen = torch.full((length, past + length), -1e9).triu(past + 1)
        x = self.model.embed_tokens(tokens)
        for n, layer in enumerate(self.model.layers, 1):
            x = layer(x, angles.cos(), angles.sin(), unseen, caches[n - 1] if caches else None)
            if halfway is not None and 2 * n == len(self.model.layers):
                halfway.append(x)
        return self.model.norm(x) @ self.model.embed_tokens.weight.T


def tokenizer() -> Tokenizer:
    """The tokenizer as it was written; learned first if there is none."""
    path = HERE / "tokenizer.json"
    if not path.exists():
        rng = random.Random(1)
        made = Tokenizer(learn([document(rng) for _ in range(8000)], CONFIG["vocab_size"]))
        write("tokenizer.json", made.json())
        write("tokenizer_config.json", made.config(CONFIG["max_position_embeddings"]))
    return Tokenizer([tuple(pair) for pair in json.loads(path.read_text())["model"]["merges"]])


def write(name: str, value: dict) -> None:
    (HERE / name).write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def names_ahead(tok: Tokenizer, text: str, ids: list[int]) -> list[int]:
    """For every token, the first token of the next name, if that name was told before; else
    -100."""
    starts, at = [], 0
    for part in IN_SPECIAL.split(text):
        for piece in [part] if part in SPECIAL else PIECE.findall(part):
            if piece.strip() in ALL_NAMES:
                starts.append((at, piece.strip()))
            at += 1 if part in SPECIAL else len(tok.piece(piece))
    ahead, told, at = [], set(), 0
    for start, name in starts:
        ahead += [ids[start] if name in told else -100] * (start - at)
        told.add(name)
        at = start
    return ahead + [-100] * (len(ids) - at)


def batches(tok: Tokenizer, seed: int):
    """Batches without end: tokens, the tokens that follow them, and the names ahead. Documents of
    like length come together, so that hardly anything is padding; the padding is at the right,
    where nothing looks at it, and -100 marks what is not scored."""
    rng = random.Random(seed)
    longest = CONFIG["max_position_embeddings"] + 1
    while True:
        texts = [document(rng) for _ in range(POOL * HALF_BATCH)]
        documents = [(ids[:longest], names_ahead(tok, text, ids)[:longest]) for text in texts for ids in [tok.encode(text)]]
        documents.sort(key=lambda both: len(both[0]))
        groups = [documents[i : i + HALF_BATCH] for i in range(0, len(documents), HALF_BATCH)]
        rng.shuffle(groups)
        for group in groups:
            both = torch.full((2, len(group), len(group[-1][0])), -100)
            for i, (ids, ahead) in enumerate(group):
                both[0, i, : len(ids)], both[1, i, : len(ids)] = torch.tensor(ids), torch.tensor(ahead)
            yield both[0, :, :-1].clamp(min=0), both[0, :, 1:], both[1, :, :-1]


def score(model, recall, tokens, targets, names):
    """The language model's loss, that of the names ahead as the first half of the layers knows
    them, and how many of the names that had to be repeated are the most probable next token."""
    halfway: list = []
    logits = model(tokens, halfway)
    loss = cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
    guesses = recall(halfway[0]) @ model.model.embed_tokens.weight.T
    recalled = cross_entropy(guesses.flatten(0, 1), names.flatten(), ignore_index=-100)
    now = (names == targets) & (names >= 0)
    right = (logits.argmax(-1) == targets)[now].float().mean()
    return loss, recalled, right


def train(minutes: float, again: bool) -> None:
    """Runs two workers, which differ only in the documents they see."""
    tokenizer()
    size = sum(p.numel() for p in TaleGpt().parameters())
    print(f"{size} parameters", flush=True)
    # Each worker's gradient, then the seconds so far, the losses, the names' share and the number
    # of tokens.
    shared = torch.zeros(2, size + CONFIG["hidden_size"] ** 2 + 5).share_memory_()
    context = torch.multiprocessing.get_context("fork")
    barrier = context.Barrier(2)
    other = context.Process(target=work, args=(1, minutes * 60, again, shared, barrier), daemon=True)
    other.start()
    work(0, minutes * 60, again, shared, barrier)
    other.join()


def work(rank: int, budget: float, again: bool, shared, barrier) -> None:
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    tok = tokenizer()
    torch.manual_seed(1)
    model = TaleGpt()
    # For training only: the first half of the layers has to know the next name. With the last
    # layer's loss alone, the model takes very long to learn that it has to copy names and not
    # invent names.
    recall = linear(CONFIG["hidden_size"], CONFIG["hidden_size"])
    parameters = [*model.parameters(), *recall.parameters()]
    groups = [
        {"params": [p for p in parameters if p.dim() == 2], "weight_decay": 0.05},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.98))
    step, before, seed = 0, 0.0, 10
    if CHECKPOINT.exists():
        saved = torch.load(CHECKPOINT)
        model.load_state_dict(saved["model"])
        seed = saved["seed"] + 2
        if not again:
            recall.load_state_dict(saved["recall"])
            optimiser.load_state_dict(saved["optimiser"])
            step, before = saved["step"], saved["seconds"]
    peak = PEAK_RATE / 2 if again else PEAK_RATE
    feed = batches(tok, seed + rank)
    started = last_saved = time.time()
    tokens_seen, seconds = 0, before

    def save() -> None:
        state = {"model": model.state_dict(), "recall": recall.state_dict(), "optimiser": optimiser.state_dict()}
        torch.save({**state, "step": step, "seconds": seconds, "seed": seed}, CHECKPOINT)

    while seconds < budget:
        step += 1
        batch = next(feed)
        optimiser.zero_grad()
        loss, recalled, right = score(model, recall, *batch)
        (loss + RECALL * recalled).backward()
        aside = torch.tensor([before + time.time() - started, loss.item(), recalled.item(), right, float((batch[1] >= 0).sum())])
        torch.cat([*(p.grad.flatten() for p in parameters), aside], out=shared[rank])
        barrier.wait()
        mean = shared.mean(0)
        barrier.wait()
        for p, gradient in zip(parameters, mean[:-5].split([p.numel() for p in parameters])):
            p.grad.copy_(gradient.view_as(p))
        seconds, tokens_seen = mean[-5].item(), tokens_seen + 2 * mean[-1].item()
        # Warm-up over 100 steps, then a cosine over the given time.
        rate = peak * min(1, step / 100) * (0.02 + 0.98 * (1 + math.cos(math.pi * min(1, seconds / budget))) / 2)
        for group in optimiser.param_groups:
            group["lr"] = rate
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        if rank == 0 and step % 25 == 0:
            pace = tokens_seen / (time.time() - started)
            what = f"loss {mean[-4]:.3f}, of names ahead {mean[-3]:.3f}, names right {mean[-2]:.0%}"
            print(f"step {step} {what} after {seconds:.0f} s, {pace:.0f} tokens/s", flush=True)
        if rank == 0 and time.time() - last_saved > 60:
            save()
            last_saved = time.time()
    if rank == 0:
        save()
        model.eval()
        with torch.no_grad():
            feed = batches(tok, 0)
            scores = [score(model, recall, *next(feed)) for _ in range(POOL)]
        print(f"held-out loss {sum(s[0].item() for s in scores) / POOL:.4f}, names right {sum(s[2].item() for s in scores) / POOL:.1%}", flush=True)


def trained():
    model = TaleGpt()
    model.load_state_dict(torch.load(CHECKPOINT)["model"])
    return model.eval()


def export_all() -> None:
    weights = {name: value.numpy() for name, value in trained().state_dict().items()}
    export(weights, CONFIG, HERE / "onnx" / "model.onnx")
    write("config.json", CONFIG)
    write("generation_config.json", GENERATION)


def generate(model, tok: Tokenizer, prompt: str, temperature: float, seed: int) -> tuple[str, bool]:
    """The text that follows, and whether it came to an end of its own accord."""
    chance = torch.Generator().manual_seed(seed)
    ids = tok.encode(prompt)
    begin = len(ids)
    caches: list[list] = [[] for _ in range(CONFIG["num_hidden_layers"])]
    fresh = ids
    with torch.no_grad():
        while len(ids) < CONFIG["max_position_embeddings"]:
            logits = model(torch.tensor([fresh]), caches=caches)[0, -1]
            if temperature == 0:
                token = int(logits.argmax())
            else:
                token = int(torch.multinomial(torch.softmax(logits / temperature, -1), 1, generator=chance))
            if token in (STOP, END):
                return tok.decode(ids[begin:]).strip(), True
            fresh = [token]
            ids = ids + fresh
    return tok.decode(ids[begin:]).strip(), False


def main() -> None:
    command = sys.argv[1] if len(sys.argv) > 1 else "train"
    if command == "tokenizer":
        (HERE / "tokenizer.json").unlink(missing_ok=True)
        tokenizer()
    if command == "train":
        train(float(sys.argv[2]) if len(sys.argv) > 2 else 30, "again" in sys.argv)
    if command in ("train", "export"):
        export_all()
    if command in ("train", "judge"):
        judge(trained(), tokenizer(), generate)


if __name__ == "__main__":
    main()
