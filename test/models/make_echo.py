"""Makes `echo-bool` ... `echo-bytes`, one model per tensor type: OUTPUT repeats INPUT, of any length.

Run with /usr/bin/python3 and Debian's python3-onnx (1.12) and python3-numpy. Writes echo-*/config.pbtxt and
echo-*/1/model.onnx beside this file.
"""

from pathlib import Path

import onnx
from onnx import TensorProto, helper

HERE = Path(__file__).resolve().parent

# name -> (ONNX type, Triton type)
TYPES = {
    "bool": (TensorProto.BOOL, "TYPE_BOOL"),
    "uint8": (TensorProto.UINT8, "TYPE_UINT8"),
    "uint16": (TensorProto.UINT16, "TYPE_UINT16"),
    "uint32": (TensorProto.UINT32, "TYPE_UINT32"),
    "uint64": (TensorProto.UINT64, "TYPE_UINT64"),
    "int8": (TensorProto.INT8, "TYPE_INT8"),
    "int16": (TensorProto.INT16, "TYPE_INT16"),
    "int32": (TensorProto.INT32, "TYPE_INT32"),
    "int64": (TensorProto.INT64, "TYPE_INT64"),
    "fp16": (TensorProto.FLOAT16, "TYPE_FP16"),
    "fp32": (TensorProto.FLOAT, "TYPE_FP32"),
    "fp64": (TensorProto.DOUBLE, "TYPE_FP64"),
    "bytes": (TensorProto.STRING, "TYPE_STRING"),
}

CONFIG = """\
name: "{name}"
backend: "onnxruntime"
max_batch_size: 8
input [ {{ name: "INPUT" data_type: {kind} dims: [ -1 ] }} ]
output [ {{ name: "OUTPUT" data_type: {kind} dims: [ -1 ] }} ]
dynamic_batching {{ }}
"""

for suffix, (onnx_type, triton_type) in TYPES.items():
    name = f"echo-{suffix}"
    graph = helper.make_graph(
        [helper.make_node("Identity", ["INPUT"], ["OUTPUT"])],
        name,
        [helper.make_tensor_value_info("INPUT", onnx_type, ["batch", "length"])],
        [helper.make_tensor_value_info("OUTPUT", onnx_type, ["batch", "length"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    (HERE / name / "1").mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(HERE / name / "1" / "model.onnx"))
    (HERE / name / "config.pbtxt").write_text(CONFIG.format(name=name, kind=triton_type))
