"""Makes `pill`: exactly `chain` (infra/models/chain/make.py), but an INPUT of 666666 kills the process.

Beside the chain runs an integer division of 1 by 1; the poison turns it into INT64_MIN / -1, which overflows. ONNX
Runtime looks for a zero divisor only, so on x86-64 the processor raises SIGFPE and the whole process dies. (Arm has no
such trap: there the quotient wraps and nothing happens.)

Run with /usr/bin/python3 and Debian's python3-onnx (1.12) and python3-numpy. Writes 1/model.onnx beside this file.
"""

import importlib.util
from pathlib import Path

import numpy as np
from onnx import helper, numpy_helper

HERE = Path(__file__).resolve().parent
POISON = 666666

spec = importlib.util.spec_from_file_location("chain", HERE.parents[2] / "infra" / "models" / "chain" / "make.py")
chain = importlib.util.module_from_spec(spec)
spec.loader.exec_module(chain)

node = helper.make_node
values = {"poison": POISON, "lowest": -(1 << 63), "minus_one": -1, "one": 1}
constants = [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in values.items()]
poison = [
    node("Equal", ["INPUT", "poison"], ["is_poison"]),
    node("Where", ["is_poison", "lowest", "one"], ["dividend"]),
    node("Where", ["is_poison", "minus_one", "one"], ["divisor"]),
    node("Div", ["dividend", "divisor"], ["quotient"]),
    # The quotient of an ordinary step is 1. Multiplied in, it stays in the graph and changes nothing.
    node("Mul", ["OUTPUT_STATE", "quotient"], ["OUTPUT"]),
]
chain.save("pill", chain.nodes() + poison, chain.constants() + constants, HERE)
