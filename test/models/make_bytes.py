"""Makes the models that give strings out other than as they came in.

- `bytes-memory`: a sequence that remembers the last TEXT. PREVIOUS is what it remembered, ID its correlation id. With
  PICK it remembers its own string instead, which holds a NUL.
- `bytes-labels`: gives one of its own strings; one of them is not UTF-8.

Run with /usr/bin/python3 and Debian's python3-onnx (1.12). Writes config.pbtxt and 1/model.onnx of each beside this
file.
"""

from pathlib import Path

import onnx
from onnx import TensorProto, helper

HERE = Path(__file__).resolve().parent
LABELS = [b"plain", b"a\0b", "\ufffd".encode(), b"\xff\xfe"]

MEMORY = """\
name: "bytes-memory"
backend: "onnxruntime"
max_batch_size: 8
input [
  { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "PICK" data_type: TYPE_BOOL dims: [ 1 ] }
]
output [
  { name: "PREVIOUS" data_type: TYPE_STRING dims: [ 1 ] },
  { name: "ID" data_type: TYPE_STRING dims: [ 1 ] }
]
sequence_batching {
  oldest { }
  max_sequence_idle_microseconds: 60000000
  control_input [ { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } ] } ]
  state [ { input_name: "STATE" output_name: "NEXT" data_type: TYPE_STRING dims: [ 1 ] } ]
}
"""

LABELLED = """\
name: "bytes-labels"
backend: "onnxruntime"
max_batch_size: 8
input [ { name: "INDEX" data_type: TYPE_INT64 dims: [ 1 ] } ]
output [ { name: "LABEL" data_type: TYPE_STRING dims: [ 1 ] } ]
dynamic_batching { }
"""


def value(name, onnx_type):
    return helper.make_tensor_value_info(name, onnx_type, ["batch", 1])


def save(name, config, nodes, inputs, outputs, initializers):
    graph = helper.make_graph(
        nodes,
        name,
        [value(*one) for one in inputs],
        [value(*one) for one in outputs],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    (HERE / name / "1").mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(HERE / name / "1" / "model.onnx"))
    (HERE / name / "config.pbtxt").write_text(config)


STRING, BOOL, INT64 = TensorProto.STRING, TensorProto.BOOL, TensorProto.INT64

save(
    "bytes-memory",
    MEMORY,
    [
        helper.make_node("Identity", ["STATE"], ["PREVIOUS"]),
        helper.make_node("Identity", ["CORRID"], ["ID"]),
        helper.make_node("Where", ["PICK", "OWN", "TEXT"], ["NEXT"]),
    ],
    [("TEXT", STRING), ("PICK", BOOL), ("STATE", STRING), ("CORRID", STRING)],
    [("PREVIOUS", STRING), ("ID", STRING), ("NEXT", STRING)],
    [helper.make_tensor("OWN", STRING, [1, 1], [b"a\0b"])],
)
save(
    "bytes-labels",
    LABELLED,
    [helper.make_node("Gather", ["LABELS", "INDEX"], ["LABEL"])],
    [("INDEX", INT64)],
    [("LABEL", STRING)],
    [helper.make_tensor("LABELS", STRING, [len(LABELS)], LABELS)],
)
