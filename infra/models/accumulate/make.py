"""Makes `accumulate`: a running sum per sequence, with all four sequence controls and one implicit
state.

OUTPUT = OUTPUT_STATE = INPUT on START, else INPUT_STATE + INPUT. Where READY is false the state
stays as it is. CORRID_OUT and END_OUT repeat the controls, so that a client can see that they
arrive.

Run with /usr/bin/python3 and Debian's python3-onnx (1.12) and python3-numpy. Writes 1/model.onnx
beside this file.
"""

from pathlib import Path

import onnx
from onnx import TensorProto, helper

HERE = Path(__file__).resolve().parent


def main() -> None:
    def tensor(name: str, kind: int = TensorProto.INT32) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, ["batch", 1])

    node = helper.make_node
    graph = helper.make_graph(
        [
            node("Cast", ["START"], ["starts"], to=TensorProto.BOOL),
            node("Cast", ["READY"], ["is_ready"], to=TensorProto.BOOL),
            node("Add", ["INPUT_STATE", "INPUT"], ["sum"]),
            node("Where", ["starts", "INPUT", "sum"], ["next"]),
            node("Where", ["is_ready", "next", "INPUT_STATE"], ["OUTPUT_STATE"]),
            node("Identity", ["OUTPUT_STATE"], ["OUTPUT"]),
            node("Identity", ["CORRID"], ["CORRID_OUT"]),
            node("Identity", ["END"], ["END_OUT"]),
        ],
        "accumulate",
        [
            tensor("INPUT"),
            tensor("START"),
            tensor("END"),
            tensor("READY"),
            tensor("CORRID", TensorProto.UINT64),
            tensor("INPUT_STATE"),
        ],
        [tensor("OUTPUT"), tensor("CORRID_OUT", TensorProto.UINT64), tensor("END_OUT"), tensor("OUTPUT_STATE")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    (HERE / "1").mkdir(exist_ok=True)
    onnx.save(model, str(HERE / "1" / "model.onnx"))


main()
