"""Makes `picky`: OUTPUT = the square of INPUT, looked up in a table of 0 to 99. An INPUT of 100 or more makes the
whole run fail with an error (not a crash), whatever else is in the batch. INPUT must not be negative (-1 to -100 count
from the end of the table).

Run with /usr/bin/python3 and Debian's python3-onnx (1.12) and python3-numpy. Writes 1/model.onnx beside this file.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent


def main() -> None:
    graph = helper.make_graph(
        [helper.make_node("Gather", ["squares", "INPUT"], ["OUTPUT"])],
        "picky",
        [helper.make_tensor_value_info("INPUT", TensorProto.INT64, ["batch", 1])],
        [helper.make_tensor_value_info("OUTPUT", TensorProto.INT64, ["batch", 1])],
        [numpy_helper.from_array(np.arange(100, dtype=np.int64) ** 2, "squares")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    (HERE / "1").mkdir(exist_ok=True)
    onnx.save(model, str(HERE / "1" / "model.onnx"))


main()
