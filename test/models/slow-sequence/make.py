"""Makes `slow-sequence`: exactly `chain` (infra/models/chain/make.py), but every run takes some 20 ms more,
however large the batch.

The time goes into a loop that starts from the input and ends in a zero that is added to the output.

Run with /usr/bin/python3 and Debian's python3-onnx (1.12) and python3-numpy. Writes 1/model.onnx beside this file.
"""

import importlib.util
from pathlib import Path

import numpy as np
from onnx import helper, numpy_helper

HERE = Path(__file__).resolve().parent


def load(name: str, path: Path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


chain = load("chain", HERE.parents[2] / "infra" / "models" / "chain" / "make.py")
slow = load("slow", HERE.parent / "slow" / "make.py")

ROUNDS = 20

node = helper.make_node
nodes = chain.nodes() + [
    node("ReduceMin", ["INPUT"], ["least"], keepdims=0),
    *slow.burn("rounds", "least", "zero"),
    node("Add", ["OUTPUT_STATE", "zero"], ["OUTPUT"]),
]
rounds = numpy_helper.from_array(np.array(ROUNDS, np.int64), "rounds")
chain.save("slow-sequence", nodes, chain.constants() + slow.constants() + [rounds], HERE)
