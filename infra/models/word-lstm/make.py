"""Makes `word-lstm`: trains a two-layer LSTM language model on the tales of tales.py, and exports
it for serving one token at a time.

TOKEN (one token id) and the states H and C (2 layers x 256) go in; PROBS (the next token's
distribution), NEXT (its most likely token) and the new states H_OUT and C_OUT come out. Token 0 is
<end>: it ends a tale, and given to a fresh sequence it asks for the opening of a new one. The batch
is the first dimension of every tensor.

Run with /usr/bin/python3 and Debian's python3-torch (1.13), python3-onnx (1.12), python3-numpy and
libopenblas0-pthread; some 8 minutes on 2 cores. Writes vocab.json, words.txt (labels) and
1/model.onnx beside this file. A first argument sets the number of training steps; `continue` as a
second one starts from the weights in 1/model.onnx.
"""

import copy
import json
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# A thread per half of a batch is three times as fast as OpenBLAS and OpenMP with two threads each.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

from tales import MEMORY, tale, tale_and_memory  # noqa: E402

EMBEDDING, HIDDEN, LAYERS = 128, 256, 2
HALF_BATCH, STEPS = 16, 900
PEAK_RATE = 4e-3
SCALE = 10.0  # of the embedding as input, to what it is as output weights


class Words(torch.nn.Module):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, EMBEDDING)
        self.lstm = torch.nn.LSTM(EMBEDDING, HIDDEN, LAYERS, batch_first=True)
        self.narrow = torch.nn.Linear(HIDDEN, EMBEDDING)
        self.bias = torch.nn.Parameter(torch.zeros(vocabulary))
        torch.nn.init.normal_(self.embedding.weight, std=0.1)
        for layer in range(LAYERS):
            # Gates that remember at first, each unit for another time, up to a tale's length
            # ("chrono" biases).
            remember = torch.log(1 + torch.rand(HIDDEN) * 150)
            getattr(self.lstm, f"bias_hh_l{layer}").data.zero_()
            bias = getattr(self.lstm, f"bias_ih_l{layer}").data.zero_()
            bias[:HIDDEN] = -1.0
            bias[HIDDEN : 2 * HIDDEN] = remember
        # For training only: at every step, the hidden state has to show the tale's hero, place and
        # so on.
        self.recall = torch.nn.ModuleList([torch.nn.Linear(HIDDEN, len(words)) for words in MEMORY.values()])

    def forward(self, tokens, states=None):
        hidden, states = self.lstm(self.embedding(tokens) * SCALE, states)
        # The output shares the embedding's weights.
        return self.narrow(hidden) @ self.embedding.weight.T + self.bias, states, hidden


def batch(rng: random.Random, ids: dict, size: int, reach: int):
    """Tales as rows; half of them begin with <end>, half with their first word. -100 marks what is
    not scored. The third tensor says for each slot of MEMORY and each position which of its words
    was told at most `reach` words ago."""
    tales = [tale_and_memory(rng) for _ in range(size)]
    rows = [(["<end>"] if rng.random() < 0.5 else []) + words for words, _ in tales]
    longest = max(len(row) for row in rows)
    tokens = torch.zeros(size, longest, dtype=torch.long)
    targets = torch.full((size, longest), -100)
    memory = torch.full((len(MEMORY), size, longest), -100)
    for i, row in enumerate(rows):
        row_ids = torch.tensor([ids[word] for word in row])
        tokens[i, : len(row) - 1] = row_ids[:-1]
        targets[i, : len(row) - 1] = row_ids[1:]
        for m, (slot, word) in enumerate(tales[i][1].items()):
            if word in row:
                first = row.index(word)
                memory[m, i, first : min(first + reach, len(row) - 1)] = MEMORY[slot].index(word)
    return tokens, targets, memory


def score(model, tokens, targets, memory):
    """The language model's loss, and the mean loss of what it should remember."""
    logits, _, hidden = model(tokens)
    cross_entropy = torch.nn.functional.cross_entropy
    loss = cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
    recalled = [
        cross_entropy(recall(hidden).flatten(0, 1), wanted.flatten(), ignore_index=-100)
        for recall, wanted in zip(model.recall, memory)
        if (wanted >= 0).any()
    ]
    return loss, sum(recalled) / len(recalled)


def load(model) -> None:
    """The weights back from the exported model: the inverse of export()."""
    found = {t.name: numpy_helper.to_array(t) for t in onnx.load(str(HERE / "1" / "model.onnx")).graph.initializer}

    def gates(matrix):
        i, o, f, g = np.split(matrix, 4)
        return np.concatenate([i, f, g, o])

    weights = {
        "embedding.weight": found["embedding"],
        "narrow.weight": found["narrow"].T,
        "narrow.bias": found["narrow_bias"],
        "bias": found["bias"],
    }
    for n in range(LAYERS):
        weights[f"lstm.weight_ih_l{n}"] = gates(found[f"w_{n}"][0]) / (SCALE if n == 0 else 1)
        weights[f"lstm.weight_hh_l{n}"] = gates(found[f"r_{n}"][0])
        ih, hh = np.split(found[f"b_{n}"][0], 2)
        weights[f"lstm.bias_ih_l{n}"], weights[f"lstm.bias_hh_l{n}"] = gates(ih), gates(hh)
    model.load_state_dict({name: torch.tensor(value.copy()) for name, value in weights.items()}, strict=False)


def train(vocabulary: list, steps: int, go_on: bool):
    ids = {word: i for i, word in enumerate(vocabulary)}
    torch.manual_seed(1)
    model = Words(len(vocabulary))
    if go_on:
        load(model)
    optimiser = torch.optim.AdamW(model.parameters(), lr=PEAK_RATE, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, PEAK_RATE, total_steps=steps + 1, pct_start=0.05)
    replicas = [model, copy.deepcopy(model)]
    pool = ThreadPoolExecutor(2)
    started = time.time()

    def gradient(replica, seed: int, reach: int):
        loss, recall_loss = score(replica, *batch(random.Random(seed), ids, HALF_BATCH, reach))
        replica.zero_grad()
        (loss + 2 * recall_loss).backward()
        return np.array([loss.item(), recall_loss.item()])

    for step in range(1, steps + 1):
        for ours, theirs in zip(model.parameters(), replicas[1].parameters()):
            theirs.data.copy_(ours.data)
        halves = [pool.submit(gradient, replica, 10 + 2 * step + i, 400 if go_on else 3 + step // 3) for i, replica in enumerate(replicas)]
        loss = sum(half.result() for half in halves) / 2
        for ours, theirs in zip(model.parameters(), replicas[1].parameters()):
            if ours.grad is not None and theirs.grad is not None:
                ours.grad.add_(theirs.grad).mul_(0.5)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 25 == 0 or step == 10:
            print(f"step {step} loss {loss[0]:.3f}, of recall {loss[1]:.3f}, after {time.time() - started:.0f} s", flush=True)
    model.eval()
    with torch.no_grad():
        held_out = score(model, *batch(random.Random(3), ids, 128, 1))[0].item()
    print(f"held-out loss {held_out:.4f}", flush=True)
    return model


def export(model, vocabulary: list) -> None:
    weights = {name: value.detach().numpy().astype(np.float32) for name, value in model.state_dict().items()}
    node = helper.make_node

    def gates(matrix):
        """From torch's gate order (i, f, g, o) to ONNX's (i, o, f, g)."""
        i, f, g, o = np.split(matrix, 4)
        return np.concatenate([i, o, f, g])

    initializers = {
        "embedding": weights["embedding.weight"],
        "narrow": np.ascontiguousarray(weights["narrow.weight"].T),
        "narrow_bias": weights["narrow.bias"],
        "bias": weights["bias"],
        "directions": np.array([0], np.int64),
    }
    nodes = [
        node("Gather", ["embedding", "TOKEN"], ["embedded"]),
        node("Transpose", ["embedded"], ["input_0"], perm=[1, 0, 2]),
        node("Transpose", ["H"], ["h_layers"], perm=[1, 0, 2]),
        node("Transpose", ["C"], ["c_layers"], perm=[1, 0, 2]),
        node("Split", ["h_layers"], ["h_0", "h_1"], axis=0),
        node("Split", ["c_layers"], ["c_0", "c_1"], axis=0),
    ]
    for n in range(LAYERS):
        initializers[f"w_{n}"] = gates(weights[f"lstm.weight_ih_l{n}"])[None] * np.float32(SCALE if n == 0 else 1)
        initializers[f"r_{n}"] = gates(weights[f"lstm.weight_hh_l{n}"])[None]
        biases = [gates(weights[f"lstm.bias_{kind}_l{n}"]) for kind in ("ih", "hh")]
        initializers[f"b_{n}"] = np.concatenate(biases)[None]
        nodes += [
            node(
                "LSTM",
                [f"input_{n}", f"w_{n}", f"r_{n}", f"b_{n}", "", f"h_{n}", f"c_{n}"],
                ["", f"input_{n + 1}", f"c_out_{n}"],
                hidden_size=HIDDEN,
            )
        ]
    nodes += [
        node("Concat", ["input_1", "input_2"], ["h_out"], axis=0),
        node("Concat", ["c_out_0", "c_out_1"], ["c_out"], axis=0),
        node("Transpose", ["h_out"], ["H_OUT"], perm=[1, 0, 2]),
        node("Transpose", ["c_out"], ["C_OUT"], perm=[1, 0, 2]),
        node("Squeeze", ["input_2", "directions"], ["top"]),
        node("Gemm", ["top", "narrow", "narrow_bias"], ["narrowed"]),
        node("Gemm", ["narrowed", "embedding", "bias"], ["logits"], transB=1),
        node("Softmax", ["logits"], ["PROBS"], axis=1),
        node("ArgMax", ["logits"], ["NEXT"], axis=1, keepdims=1),
    ]

    def tensor(name: str, kind: int, *dims) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, ["batch", *dims])

    graph = helper.make_graph(
        nodes,
        "word-lstm",
        [
            tensor("TOKEN", TensorProto.INT64, 1),
            tensor("H", TensorProto.FLOAT, LAYERS, HIDDEN),
            tensor("C", TensorProto.FLOAT, LAYERS, HIDDEN),
        ],
        [
            tensor("PROBS", TensorProto.FLOAT, len(vocabulary)),
            tensor("NEXT", TensorProto.INT64, 1),
            tensor("H_OUT", TensorProto.FLOAT, LAYERS, HIDDEN),
            tensor("C_OUT", TensorProto.FLOAT, LAYERS, HIDDEN),
        ],
        [numpy_helper.from_array(value, name) for name, value in initializers.items()],
    )
    onnx_model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(onnx_model)
    (HERE / "1").mkdir(exist_ok=True)
    onnx.save(onnx_model, str(HERE / "1" / "model.onnx"))


def sample(model, vocabulary: list, opening: str, seed: int, temperature: float = 0.7) -> str:
    torch.manual_seed(seed)
    words = opening.split()
    states, token = None, None
    with torch.no_grad():
        for word in words:
            logits, states, _ = model(torch.tensor([[vocabulary.index(word)]]), states)
        while len(words) < 300:
            token = torch.multinomial(torch.softmax(logits[0, 0] / temperature, -1), 1).item()
            words.append(vocabulary[token])
            if token == 0:
                break
            logits, states, _ = model(torch.tensor([[token]]), states)
    return " ".join(words)


def main() -> None:
    rng = random.Random(1)
    vocabulary = ["<end>", *sorted({word for _ in range(30_000) for word in tale(rng)} - {"<end>"})]
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else STEPS
    model = train(vocabulary, steps, "continue" in sys.argv)
    (HERE / "vocab.json").write_text(json.dumps(vocabulary, indent=2, ensure_ascii=False) + "\n")
    (HERE / "words.txt").write_text("\n".join(vocabulary) + "\n")
    export(model, vocabulary)
    for seed, opening in enumerate(
        [
            "Once upon a time there was a clever fox named Mira who lived",
            "Long ago , in a village by the sea , there lived a brave mouse named Tomas . His best friend was Ines",
            "There once was a shy girl , and her name was Luna . She lived in a lighthouse",
        ]
    ):
        print("\n" + sample(model, vocabulary, opening, seed))


main()
