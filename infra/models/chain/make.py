"""Makes `chain`: an order-sensitive hash chain over the inputs of a sequence, to prove that no step
is lost, doubled or swapped.

All arithmetic is on 64-bit integers that wrap around (two's complement):

    state  = SEED on START, else the implicit state
    x      = state * A + INPUT * K + C
    state' = rotate_left(x, 23)          (rotation of the 64 bits; x >> 41 is the logical shift)
    OUTPUT = state'

    SEED = 0x243F6A8885A308D3 =  2611923443488327891
    A    = 6364136223846793005           (odd: for a given input the step is a bijection of the state, so that
    K    = 0x9E3779B97F4A7C15 = -7046029254386353131     two histories that once differ never meet again by themselves)
    C    = 1442695040888963407

The same in TypeScript: test/fixtures/models/chain-reference.ts.

Run with /usr/bin/python3 and Debian's python3-onnx (1.12) and python3-numpy. Writes 1/model.onnx
beside this file.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent

SEED = 0x243F6A8885A308D3
A = 6364136223846793005
K = 0x9E3779B97F4A7C15 - (1 << 64)
C = 1442695040888963407
ROTATE = 23

INPUTS = [("INPUT", TensorProto.INT64), ("START", TensorProto.INT32), ("INPUT_STATE", TensorProto.INT64)]
OUTPUTS = [("OUTPUT", TensorProto.INT64), ("OUTPUT_STATE", TensorProto.INT64)]


def constants() -> list:
    values = {"seed": SEED, "a": A, "k": K, "c": C}
    tensors = [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in values.items()]
    shifts = {"left_by": ROTATE, "right_by": 64 - ROTATE}
    return tensors + [numpy_helper.from_array(np.array(v, np.uint64), n) for n, v in shifts.items()]


def nodes(result: str = "OUTPUT_STATE") -> list:
    """The step, from INPUT, START and INPUT_STATE to `result`."""
    node = helper.make_node
    return [
        node("Cast", ["START"], ["starts"], to=TensorProto.BOOL),
        node("Where", ["starts", "seed", "INPUT_STATE"], ["state"]),
        node("Mul", ["state", "a"], ["state_a"]),
        node("Mul", ["INPUT", "k"], ["input_k"]),
        node("Add", ["state_a", "input_k"], ["both"]),
        node("Add", ["both", "c"], ["x"]),
        node("Cast", ["x"], ["bits"], to=TensorProto.UINT64),
        node("BitShift", ["bits", "left_by"], ["high_bits"], direction="LEFT"),
        node("BitShift", ["bits", "right_by"], ["low_bits"], direction="RIGHT"),
        node("Cast", ["high_bits"], ["high"], to=TensorProto.INT64),
        node("Cast", ["low_bits"], ["low"], to=TensorProto.INT64),
        node("Add", ["high", "low"], [result]),
    ]


def save(name: str, all_nodes: list, initializers: list, directory: Path) -> None:
    def tensor(entry: tuple) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(entry[0], entry[1], ["batch", 1])

    graph = helper.make_graph(
        all_nodes, name, [tensor(i) for i in INPUTS], [tensor(o) for o in OUTPUTS], initializers
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    (directory / "1").mkdir(exist_ok=True)
    onnx.save(model, str(directory / "1" / "model.onnx"))


if __name__ == "__main__":
    save("chain", nodes() + [helper.make_node("Identity", ["OUTPUT_STATE"], ["OUTPUT"])], constants(), HERE)
