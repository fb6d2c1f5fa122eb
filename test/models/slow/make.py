"""Makes `slow`: OUTPUT = N, after about N milliseconds (N rounds, each of which sums up a long vector).

A running sum is used because ONNX Runtime computes it on one thread, so that the time does not depend on the number of
threads. The integers wrap around; the loop's result modulo 1, always zero, is added to the output, so that no optimiser
can drop the loop.

Run with /usr/bin/python3 and Debian's python3-onnx (1.12) and python3-numpy. Writes 1/model.onnx beside this file.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
SIZE = 400_000

node = helper.make_node


def constants() -> list:
    return [
        numpy_helper.from_array(np.array([SIZE], np.int64), "length"),
        numpy_helper.from_array(np.array(0, np.int64), "axis"),
        numpy_helper.from_array(np.array(1, np.int64), "unit"),
    ]


def burn(rounds: str, salt: str, zero: str) -> list:
    """Nodes that spend `rounds` (INT64 scalar) rounds on a vector of `salt` (INT64 scalar) and give an INT64 scalar
    that is always zero."""
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            node("Identity", ["go"], ["go_on"]),
            node("CumSum", ["in_vector", "axis"], ["out_vector"]),
        ],
        "round",
        [
            value("round", TensorProto.INT64, []),
            value("go", TensorProto.BOOL, []),
            value("in_vector", TensorProto.INT64, [SIZE]),
        ],
        [value("go_on", TensorProto.BOOL, []), value("out_vector", TensorProto.INT64, [SIZE])],
    )
    return [
        node("Expand", [salt, "length"], ["first_vector"]),
        node("Loop", [rounds, "", "first_vector"], ["last_vector"], body=body),
        node("ReduceMax", ["last_vector"], ["largest"], keepdims=0),
        node("Mod", ["largest", "unit"], [zero]),
    ]


def main() -> None:
    first = numpy_helper.from_array(np.array(0, np.int64), "first")
    graph = helper.make_graph(
        [
            node("Gather", ["N", "first"], ["rounds"]),
            *burn("rounds", "rounds", "zero"),
            node("Add", ["N", "zero"], ["OUTPUT"]),
        ],
        "slow",
        [helper.make_tensor_value_info("N", TensorProto.INT64, [1])],
        [helper.make_tensor_value_info("OUTPUT", TensorProto.INT64, [1])],
        [*constants(), first],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    (HERE / "1").mkdir(exist_ok=True)
    onnx.save(model, str(HERE / "1" / "model.onnx"))


if __name__ == "__main__":
    main()
