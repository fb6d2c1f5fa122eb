"""Prepares repositories of Triton's tests for a machine without a GPU and without Triton's own
backends: repository.py REPOSITORY... The identity backend, and models in Python that hand their
inputs on, become ONNX graphs, and `repeat`, `square` and `mock_llm` iterative ones. Their DELAY and
WAIT do nothing. The names of helper models get dots for commas, which no name may have here.
"""
import os
import re
import sys

import onnx
from onnx import TensorProto as T
from onnx import helper

TYPES = {
    "STRING": T.STRING, "FP16": T.FLOAT16, "FP32": T.FLOAT, "FP64": T.DOUBLE, "BOOL": T.BOOL,
    "INT8": T.INT8, "INT16": T.INT16, "INT32": T.INT32, "INT64": T.INT64,
    "UINT8": T.UINT8, "UINT16": T.UINT16, "UINT32": T.UINT32, "UINT64": T.UINT64,
}  # fmt: skip
node = helper.make_node


def save(folder, nodes, inputs, outputs, initializers=()):
    infos = [[helper.make_tensor_value_info(*one) for one in some] for some in (inputs, outputs)]
    graph = helper.make_graph(nodes, "graph", *infos, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 7
    os.makedirs(f"{folder}/1", exist_ok=True)
    onnx.save(model, f"{folder}/1/model.onnx")


def identity(folder, config):
    batch = ["batch"] if int((re.search(r"max_batch_size:\s*(\d+)", config) or [0, 0])[1]) else []

    def tensors(kind):
        pattern = r'name:\s*"([^"]+)"\s*data_type:\s*"?TYPE_(\w+)"?\s*dims:\s*\[([^\]]*)\]'
        blocks = re.findall(kind + r"\s*\[(.*?)\n\s*\]", config, re.S)
        for name, datatype, dims in re.findall(pattern, "\n".join(blocks)):
            sizes = [dim.strip() for dim in dims.split(",")]
            shape = [f"{name}{i}" if dim == "-1" else int(dim) for i, dim in enumerate(sizes)]
            yield name, TYPES[datatype], batch + shape

    inputs, outputs = list(tensors("input")), list(tensors("output"))
    save(folder, [node("Identity", [i[0]], [o[0]]) for i, o in zip(inputs, outputs)], inputs, outputs)


def constant(name, datatype, *values):
    return helper.make_tensor(name, datatype, [len(values)], values)


AGAIN = ("MORE", T.BOOL, [1]), ("SAYS", T.BOOL, [1])
ITERATES = """
sequence_batching {
  iterative_sequence: true
  state { input_name: "AT" output_name: "NEXT" data_type: TYPE_INT32 dims: 1 }
}
parameters { key: "iterate_while" value: { string_value: "MORE" } }
parameters { key: "respond_when" value: { string_value: "SAYS" } }
parameters { key: "max_iterations" value: { string_value: "100000" } }
"""
STEP = [node("Add", ["AT", "one"], ["NEXT"])]
ONE = constant("one", T.INT32, 1)


def repeat(folder):
    nodes = [
        node("Shape", ["IN"], ["length"]),
        node("Cast", ["length"], ["n"], to=T.INT32),
        node("Concat", ["IN", "zero"], ["padded"], axis=0),
        node("Gather", ["padded", "AT"], ["OUT"], axis=0),
        node("Cast", ["AT"], ["IDX"], to=T.UINT32),
        node("Less", ["NEXT", "n"], ["MORE"]),
        node("Less", ["AT", "n"], ["SAYS"]),
        node("Identity", ["DELAY"], ["delay"]),
        node("Identity", ["WAIT"], ["wait"]),
    ]
    inputs = [("IN", T.INT32, ["n"]), ("DELAY", T.UINT32, ["m"]), ("WAIT", T.UINT32, [1]), ("AT", T.INT32, [1])]
    outputs = [("OUT", T.INT32, [1]), ("IDX", T.UINT32, [1]), ("NEXT", T.INT32, [1]), *AGAIN]
    save(folder, STEP + nodes, inputs, outputs, [constant("zero", T.INT32, 0), ONE])


def square(folder):
    nodes = [node("Identity", ["IN"], ["OUT"]), node("Less", ["NEXT", "IN"], ["MORE"]), node("Less", ["AT", "IN"], ["SAYS"])]
    outputs = [("OUT", T.INT32, [1]), ("NEXT", T.INT32, [1]), *AGAIN]
    save(folder, STEP + nodes, [("IN", T.INT32, [1]), ("AT", T.INT32, [1])], outputs, [ONE])


def mock_llm(folder):
    nodes = [
        node("Identity", ["PROMPT"], ["TEXT"]),
        node("Reshape", ["STREAM", "row"], ["streams"]),
        node("Less", ["NEXT", "REPETITION"], ["more"]),
        node("And", ["more", "streams"], ["MORE"]),
        node("Not", ["streams"], ["whole"]),
        node("Less", ["AT", "REPETITION"], ["says"]),
        node("Or", ["says", "whole"], ["SAYS"]),
    ]
    inputs = [("PROMPT", T.STRING, [1, 1]), ("STREAM", T.BOOL, [1, 1]), ("REPETITION", T.INT32, [1]), ("AT", T.INT32, [1])]
    outputs = [("TEXT", T.STRING, [1, 1]), ("NEXT", T.INT32, [1]), *AGAIN]
    save(folder, STEP + nodes, inputs, outputs, [ONE, constant("row", T.INT64, 1), constant("REPETITION", T.INT32, 1)])


MOCK_LLM = """max_batch_size: 0
model_transaction_policy { decoupled: true }
input [
  { name: "PROMPT" data_type: TYPE_STRING dims: [ 1, 1 ] },
  { name: "STREAM" data_type: TYPE_BOOL dims: [ 1, 1 ] },
  { name: "REPETITION" data_type: TYPE_INT32 dims: [ 1 ] optional: true }
]
output { name: "TEXT" data_type: TYPE_STRING dims: [ 1, 1 ] }
"""


def add_sub(folder):
    pair = lambda *names: [(name, T.INT32, [1]) for name in names]
    nodes = [node("Sub", ["INPUT0", "INPUT1"], ["OUTPUT__0"]), node("Add", ["INPUT0", "INPUT1"], ["OUTPUT__1"])]
    save(folder, nodes, pair("INPUT0", "INPUT1"), pair("OUTPUT__0", "OUTPUT__1"))


def backend(config, name):
    return re.search(rf'backend:\s*"{name}"', config) is not None


def prepare(folder, name):
    path = f"{folder}/config.pbtxt"
    with open(path) as file:
        config = file.read()
    config = config.replace("KIND_GPU", "KIND_CPU")
    config = re.sub(r'"nop_[^"]*"', lambda found: found[0].replace(",", "."), config)
    made = True
    if backend(config, "identity") or re.match("(simple|string)_identity", name):
        identity(folder, config)
    elif backend(config, "repeat"):
        repeat(folder)
        config += ITERATES
    elif backend(config, "square"):
        square(folder)
        config += ITERATES
    elif name == "libtorch_nobatch_int32_int32_int32":
        add_sub(folder)
        config = 'backend: "pytorch"\nmax_batch_size: 0\n'
    elif name == "mock_llm":
        mock_llm(folder)
        config = 'backend: "python"\n' + MOCK_LLM + ITERATES
    else:
        made = False
    if made:
        config = re.sub(r'backend:\s*"\w+"', 'backend: "onnxruntime"', config)
    if re.search(r"decoupled:\s*(?i:false)", config):
        config = re.sub(r'parameters { key: "respond_when".*\n', "", config)
    with open(path, "w") as file:
        file.write(config)
    os.rename(folder, folder.replace(",", "."))


for repository in sys.argv[1:]:
    for name in sorted(os.listdir(repository)):
        if os.path.exists(f"{repository}/{name}/config.pbtxt"):
            prepare(f"{repository}/{name}", name)
