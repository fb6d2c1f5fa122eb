"""Makes `letter-lstm`: trains a small LSTM on sentences about the animals of `word-lstm`'s tales,
letter by letter, and exports it as a decoder that writes a sentence on in one request.

TOKENS (ASCII codes), LENGTH (how many letters may follow) and the states H and C go in. TOKEN (the
most probable next letter), MORE (whether another letter shall follow) and the inputs of the next
run come out: H_OUT, C_OUT, and LEFT for LENGTH. The first run reads the whole beginning, each
further run the letter of the run before. Code 10, a line's end, ends a sentence.

Run with /usr/bin/python3 and Debian's python3-torch (1.13), python3-onnx (1.12), python3-numpy and
libopenblas0-pthread; some four minutes on a core. Writes 1/model.onnx beside this file.
"""

import os
import random
import sys
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "word-lstm"))
sys.dont_write_bytecode = True

from tales import FRIENDS, HEROES, KINDS, PLACES, TRAITS  # noqa: E402

CODES, EMBEDDING, HIDDEN = 128, 16, 80
END = 10
BATCH, STEPS, PEAK_RATE = 64, 3000, 1e-2


class Letters(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(CODES, EMBEDDING)
        self.lstm = torch.nn.LSTM(EMBEDDING, HIDDEN, batch_first=True)
        self.output = torch.nn.Linear(HIDDEN, CODES)
        # Gates that remember at first, each unit for another time, up to a sentence's length.
        self.lstm.bias_hh_l0.data.zero_()
        self.lstm.bias_ih_l0.data[HIDDEN : 2 * HIDDEN] = torch.log(1 + torch.rand(HIDDEN) * 60)

    def forward(self, tokens, states=None):
        hidden, states = self.lstm(self.embedding(tokens), states)
        return self.output(hidden), states


def sentence(rng: random.Random) -> str:
    """The trait says with whom the hero lives, and the kind says where: the states keep both."""
    names, kind, trait = HEROES[0] + HEROES[1], rng.randrange(len(KINDS)), rng.randrange(len(TRAITS))
    place = " ".join(PLACES[kind % len(PLACES)])
    friend = (FRIENDS[0] + FRIENDS[1])[trait]
    return f"{rng.choice(names)} the {TRAITS[trait]} {KINDS[kind]} lives with {friend} {place}."


def batch(rng: random.Random):
    rows = [sentence(rng) for _ in range(BATCH)]
    longest = max(map(len, rows))
    codes = torch.full((len(rows), longest + 1), -100)
    for at, row in enumerate(rows):
        codes[at, : len(row) + 1] = torch.tensor([*row.encode("ascii"), END])
    # A letter beyond the end of its row is not scored.
    return codes[:, :-1].clamp(min=0), codes[:, 1:]


def train() -> Letters:
    torch.manual_seed(1)
    rng = random.Random(1)
    model = Letters()
    optimiser = torch.optim.AdamW(model.parameters(), lr=PEAK_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, PEAK_RATE, total_steps=STEPS)
    for step in range(1, STEPS + 1):
        tokens, targets = batch(rng)
        logits, _ = model(tokens)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.3f}", flush=True)
    return model


def export(model: Letters) -> None:
    weights = {name: value.detach().numpy().astype(np.float32) for name, value in model.state_dict().items()}
    node = helper.make_node

    def gates(matrix):
        """From torch's gate order (i, f, g, o) to ONNX's (i, o, f, g)."""
        i, f, g, o = np.split(matrix, 4)
        return np.concatenate([i, o, f, g])

    initializers = {
        "embedding": weights["embedding.weight"],
        "w": gates(weights["lstm.weight_ih_l0"])[None],
        "r": gates(weights["lstm.weight_hh_l0"])[None],
        "b": np.concatenate([gates(weights[f"lstm.bias_{kind}_l0"]) for kind in ("ih", "hh")])[None],
        "output": weights["output.weight"],
        "bias": weights["output.bias"],
        "direction": np.array([0], np.int64),
        "one": np.array([1], np.int64),
        "end": np.array([END], np.int64),
    }
    nodes = [
        node("Gather", ["embedding", "TOKENS"], ["embedded"]),
        node("Transpose", ["embedded"], ["steps"], perm=[1, 0, 2]),
        node("Unsqueeze", ["H", "direction"], ["h"]),
        node("Unsqueeze", ["C", "direction"], ["c"]),
        node("LSTM", ["steps", "w", "r", "b", "", "h", "c"], ["", "h_out", "c_out"], hidden_size=HIDDEN),
        node("Squeeze", ["h_out", "direction"], ["H_OUT"]),
        node("Squeeze", ["c_out", "direction"], ["C_OUT"]),
        node("Gemm", ["H_OUT", "output", "bias"], ["logits"], transB=1),
        node("ArgMax", ["logits"], ["TOKEN"], axis=1, keepdims=1),
        node("Sub", ["LENGTH", "one"], ["LEFT"]),
        node("Greater", ["LEFT", "direction"], ["has_room"]),
        node("Equal", ["TOKEN", "end"], ["is_end"]),
        node("Not", ["is_end"], ["goes_on"]),
        node("And", ["has_room", "goes_on"], ["MORE"]),
    ]

    def tensor(name: str, kind: int, *dims) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, ["batch", *dims])

    graph = helper.make_graph(
        nodes,
        "letter-lstm",
        [
            tensor("TOKENS", TensorProto.INT64, "length"),
            tensor("LENGTH", TensorProto.INT64, 1),
            tensor("H", TensorProto.FLOAT, HIDDEN),
            tensor("C", TensorProto.FLOAT, HIDDEN),
        ],
        [
            tensor("TOKEN", TensorProto.INT64, 1),
            tensor("MORE", TensorProto.BOOL, 1),
            tensor("LEFT", TensorProto.INT64, 1),
            tensor("H_OUT", TensorProto.FLOAT, HIDDEN),
            tensor("C_OUT", TensorProto.FLOAT, HIDDEN),
        ],
        [numpy_helper.from_array(value, name) for name, value in initializers.items()],
    )
    onnx_model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(onnx_model)
    (HERE / "1").mkdir(exist_ok=True)
    onnx.save(onnx_model, str(HERE / "1" / "model.onnx"))


def continued(model: Letters, opening: str) -> str:
    text, states, tokens = opening, None, torch.tensor([list(opening.encode("ascii"))])
    with torch.no_grad():
        while len(text) < 120:
            logits, states = model(tokens, states)
            tokens = logits[:, -1:].argmax(-1)
            if tokens.item() == END:
                break
            text += chr(tokens.item())
    return text


def main() -> None:
    model = train()
    export(model)
    rng = random.Random(2)
    told = [sentence(rng) for _ in range(200)]
    written = [continued(model, one[: one.index(" lives")]) for one in told]
    print(f"{sum(map(str.__eq__, told, written))} of {len(told)} sentences end as they should, such as:")
    print("\n".join(written[:5]))


main()
