"""Makes `grow`: OUTPUT is N ones (FP32), so that a caller decides how large an answer gets, or asks for more than
there is memory.

Run with /usr/bin/python3 and Debian's python3-onnx (1.12) and python3-numpy. Writes 1/model.onnx beside this file.
"""

from pathlib import Path

import onnx
from onnx import TensorProto, helper

HERE = Path(__file__).resolve().parent


def main() -> None:
    one = helper.make_tensor("value", TensorProto.FLOAT, [1], [1.0])
    graph = helper.make_graph(
        [helper.make_node("ConstantOfShape", ["N"], ["OUTPUT"], value=one)],
        "grow",
        [helper.make_tensor_value_info("N", TensorProto.INT64, [1])],
        [helper.make_tensor_value_info("OUTPUT", TensorProto.FLOAT, ["length"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    (HERE / "1").mkdir(exist_ok=True)
    onnx.save(model, str(HERE / "1" / "model.onnx"))


main()
