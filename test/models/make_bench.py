"""Makes `lstm-128` and `lstm-1024`, the benchmarks' models: one LSTM layer without biases, one step per request.

X, H and C (FP32, 128 or 1024) go in; Y (= H_OUT), H_OUT and C_OUT come out. The weights are pseudo-random and are not
stored: weight[i][j] = ((a[i] * b[j]) mod 8191 - 4095) * scale, of two short integer vectors. ONNX Runtime folds the
constants when it loads the model, so that a session holds ordinary dense matrices (2048 x 4096 floats, 32 MiB) and
takes as long for a step as with stored ones, but the file is small. (Integers, so that every machine gets the same.)

Run with /usr/bin/python3 and Debian's python3-onnx (1.12) and python3-numpy. Writes lstm-*/config.pbtxt and
lstm-*/1/model.onnx beside this file. With an output directory as argument it writes there, for comparison, the
variants {op,matmul}-{folded,stored}-<size>.onnx and nothing else.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
PRIME = 8191
OP = False  # the gates as one matrix product: 3 to 8 % faster than ONNX Runtime's LSTM operator at batch 1 to 128
# Most rows of a batch, and how long its oldest waits for company, in µs.
WINDOWS = {128: (128, 500), 1024: (64, 15_000)}

node = helper.make_node


def matrix(name: str, rows: int, columns: int, spread: float, seed: int, stored: bool, lead: bool) -> tuple:
    """Nodes and initializers that give `name` as [rows, columns], or [1, rows, columns] with `lead`."""
    random = np.random.default_rng(seed)
    a = random.integers(1, PRIME, (rows, 1), np.int64)
    b = random.integers(1, PRIME, (1, columns), np.int64)
    if lead:
        a, b = a[None], b[None]
    scale = np.array(spread * 2 / PRIME, np.float32)
    middle = np.array((PRIME - 1) / 2, np.float32)
    if stored:
        return [], {name: ((a * b % PRIME).astype(np.float32) - middle) * scale}
    nodes = [
        node("Mul", [f"{name}_a", f"{name}_b"], [f"{name}_products"]),
        node("Mod", [f"{name}_products", "prime"], [f"{name}_integers"]),
        node("Cast", [f"{name}_integers"], [f"{name}_floats"], to=TensorProto.FLOAT),
        node("Sub", [f"{name}_floats", f"{name}_middle"], [f"{name}_centred"]),
        node("Mul", [f"{name}_centred", f"{name}_scale"], [name]),
    ]
    constants = {f"{name}_a": a, f"{name}_b": b, f"{name}_middle": middle, f"{name}_scale": scale}
    return nodes, {**constants, "prime": np.array(PRIME, np.int64)}


def build(size: int, op: bool, stored: bool) -> onnx.ModelProto:
    spread = 1.7 / size**0.5
    if op:
        w = matrix("w", 4 * size, size, spread, 1, stored, True)
        r = matrix("r", 4 * size, size, spread, 2, stored, True)
        nodes = [
            *w[0],
            *r[0],
            *[node("Unsqueeze", [name, "zero"], [f"{name}_steps"]) for name in "XHC"],
            node("LSTM", ["X_steps", "w", "r", "", "", "H_steps", "C_steps"], ["", "h", "c"], hidden_size=size),
            node("Squeeze", ["h", "zero"], ["H_OUT"]),
            node("Squeeze", ["c", "zero"], ["C_OUT"]),
        ]
        constants = {**w[1], **r[1], "zero": np.array([0], np.int64)}
    else:
        w = matrix("w", 2 * size, 4 * size, spread, 1, stored, False)
        nodes = [
            *w[0],
            node("Concat", ["X", "H"], ["both"], axis=1),
            node("MatMul", ["both", "w"], ["gates"]),
            node("Split", ["gates", "gate_sizes"], ["sigmoid_gates", "tanh_gate"], axis=1),
            node("Sigmoid", ["sigmoid_gates"], ["open"]),
            node("Split", ["open"], ["i", "o", "f"], axis=1),
            node("Tanh", ["tanh_gate"], ["g"]),
            node("Mul", ["f", "C"], ["kept"]),
            node("Mul", ["i", "g"], ["added"]),
            node("Add", ["kept", "added"], ["C_OUT"]),
            node("Tanh", ["C_OUT"], ["c_tanh"]),
            node("Mul", ["o", "c_tanh"], ["H_OUT"]),
        ]
        constants = {**w[1], "gate_sizes": np.array([3 * size, size], np.int64)}

    def tensor(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size])

    graph = helper.make_graph(
        [*nodes, node("Identity", ["H_OUT"], ["Y"])],
        f"lstm-{size}",
        [tensor(name) for name in ("X", "H", "C")],
        [tensor(name) for name in ("Y", "H_OUT", "C_OUT")],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


CONFIG = """\
name: "lstm-{size}"
backend: "onnxruntime"
max_batch_size: {batch}
input [ {{ name: "X" data_type: TYPE_FP32 dims: [ {size} ] }} ]
output [ {{ name: "Y" data_type: TYPE_FP32 dims: [ {size} ] }} ]
sequence_batching {{
  max_sequence_idle_microseconds: 60000000
  oldest {{ max_candidate_sequences: 4096 max_queue_delay_microseconds: {delay} }}
  state [
    {{
      input_name: "H"
      output_name: "H_OUT"
      data_type: TYPE_FP32
      dims: [ {size} ]
      initial_state {{ name: "zero" data_type: TYPE_FP32 dims: [ {size} ] zero_data: true }}
    }},
    {{
      input_name: "C"
      output_name: "C_OUT"
      data_type: TYPE_FP32
      dims: [ {size} ]
      initial_state {{ name: "zero" data_type: TYPE_FP32 dims: [ {size} ] zero_data: true }}
    }}
  ]
}}
"""


def main() -> None:
    if len(sys.argv) > 1:
        for size in WINDOWS:
            for op in (True, False):
                for stored in (True, False):
                    name = f"{'op' if op else 'matmul'}-{'stored' if stored else 'folded'}-{size}.onnx"
                    onnx.save(build(size, op, stored), str(Path(sys.argv[1]) / name))
        return
    for size, (batch, delay) in WINDOWS.items():
        directory = HERE / f"lstm-{size}"
        (directory / "1").mkdir(parents=True, exist_ok=True)
        (directory / "config.pbtxt").write_text(CONFIG.format(size=size, batch=batch, delay=delay))
        onnx.save(build(size, OP, False), str(directory / "1" / "model.onnx"))


main()
