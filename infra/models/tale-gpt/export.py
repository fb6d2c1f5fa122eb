"""Writes tale-gpt's weights as onnx/model.onnx, in the layout of optimum and onnx-community: token
ids, attention mask, position ids and past keys and values go in; logits and present keys and values
come out. Standard operators of opset 17.

A query sees a key if the key does not come after it (by its index in the cache, not by position id)
and if the attention mask is 1 there. What it does not see gets the lowest finite score, hence a
weight of exactly zero; minus infinity would make a row that sees nothing (a padded position) NaN.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """Nodes and constants as they are added; every method returns the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def op(self, kind: str, *inputs: str, out: str | None = None, **attributes) -> str:
        out = out or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=out, **attributes))
        return out

    def constant(self, name: str, value, dtype=np.int64) -> str:
        self.constants[name] = np.ascontiguousarray(np.asarray(value, dtype))
        return name

    def ints(self, *values: int) -> str:
        return self.constant("ints_" + "_".join(map(str, values)).replace("-", "m"), values)

    def size(self, of: str, axis: int) -> str:
        """The length of an axis, as a tensor of shape [1]."""
        return self.op("Gather", self.op("Shape", of), self.ints(axis))


def export(weights: dict[str, np.ndarray], config: dict, path: Path) -> None:
    layers, hidden = config["num_hidden_layers"], config["hidden_size"]
    heads, groups, size = config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]
    share = heads // groups  # query heads for each head of keys and values
    g = Graph()
    epsilon = g.constant("epsilon", config["rms_norm_eps"], np.float32)
    lowest = g.constant("lowest", np.finfo(np.float32).min, np.float32)
    half_size = g.ints(size // 2)
    zero, one, end = g.ints(0), g.ints(1), g.ints(np.iinfo(np.int64).max)

    def weight(name: str, transposed: bool = True) -> str:
        return g.constant(name, weights[name].T if transposed else weights[name], np.float32)

    def norm(x: str, name: str) -> str:
        mean = g.op("ReduceMean", g.op("Mul", x, x), axes=[-1], keepdims=1)
        root = g.op("Sqrt", g.op("Add", mean, epsilon))
        return g.op("Mul", g.op("Div", x, root), weight(name, False))

    # The rotation angles of keys and queries, [batch, 1, sequence, size / 2].
    frequencies = config["rope_theta"] ** (-np.arange(0, size, 2) / size)
    positions = g.op("Unsqueeze", g.op("Cast", "position_ids", to=TensorProto.FLOAT), g.ints(1, 3))
    angles = g.op("Mul", positions, g.constant("frequencies", frequencies, np.float32))
    cos, sin = g.op("Cos", angles), g.op("Sin", angles)

    def turn(x: str) -> str:
        """Rotary embedding, as Llama does it: the first half of a head turns with the second."""
        first = g.op("Slice", x, zero, half_size, g.ints(-1))
        second = g.op("Slice", x, half_size, end, g.ints(-1))
        return g.op(
            "Concat",
            g.op("Sub", g.op("Mul", first, cos), g.op("Mul", second, sin)),
            g.op("Add", g.op("Mul", second, cos), g.op("Mul", first, sin)),
            axis=-1,
        )

    # The mask of each query, [batch, 1, 1, sequence, total].
    length, total = g.size("input_ids", 1), g.size("attention_mask", 1)
    step = g.constant("step", 1)
    start = g.constant("start", 0)
    every = g.op("Range", start, g.op("Squeeze", total), step)
    queries = g.op("Slice", every, g.op("Sub", total, length), total, zero)
    causal = g.op("LessOrEqual", every, g.op("Unsqueeze", queries, one))
    visible = g.op("Cast", g.op("Unsqueeze", "attention_mask", g.ints(1, 2, 3)), to=TensorProto.BOOL)
    seen = g.op("And", visible, causal)

    x = g.op("Gather", weight("model.embed_tokens.weight", False), "input_ids")
    for n in range(layers):
        layer = f"model.layers.{n}"

        def heads_of(x: str, name: str, count: int) -> str:
            """[batch, count, sequence, size]"""
            flat = g.op("MatMul", x, weight(f"{layer}.self_attn.{name}_proj.weight"))
            return g.op("Transpose", g.op("Reshape", flat, g.ints(0, 0, count, size)), perm=[0, 2, 1, 3])

        h = norm(x, f"{layer}.input_layernorm.weight")
        query = turn(heads_of(h, "q", heads))
        key = g.op("Concat", f"past_key_values.{n}.key", turn(heads_of(h, "k", groups)), axis=2, out=f"present.{n}.key")
        value = g.op("Concat", f"past_key_values.{n}.value", heads_of(h, "v", groups), axis=2, out=f"present.{n}.value")
        # Puts the query heads that share keys one after the other, so that keys need no copies.
        query = g.op("Reshape", g.op("Mul", query, g.constant("scale", size**-0.5, np.float32)), g.ints(0, groups, -1, size))
        scores = g.op("MatMul", query, g.op("Transpose", key, perm=[0, 1, 3, 2]))
        apart = g.op("Concat", g.ints(0, groups, share), length, total, axis=0)
        scores = g.op("Where", seen, g.op("Reshape", scores, apart), lowest)
        together = g.op("Concat", g.ints(0, groups, -1), total, axis=0)
        mixed = g.op("MatMul", g.op("Reshape", g.op("Softmax", scores, axis=-1), together), value)
        apart = g.op("Concat", g.ints(0, heads), length, g.ints(size), axis=0)
        mixed = g.op("Transpose", g.op("Reshape", mixed, apart), perm=[0, 2, 1, 3])
        mixed = g.op("Reshape", mixed, g.ints(0, 0, hidden))
        x = g.op("Add", x, g.op("MatMul", mixed, weight(f"{layer}.self_attn.o_proj.weight")))

        h = norm(x, f"{layer}.post_attention_layernorm.weight")
        gate = g.op("MatMul", h, weight(f"{layer}.mlp.gate_proj.weight"))
        gated = g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), g.op("MatMul", h, weight(f"{layer}.mlp.up_proj.weight")))
        x = g.op("Add", x, g.op("MatMul", gated, weight(f"{layer}.mlp.down_proj.weight")))

    # The output weights are the embedding, so the file has them once.
    g.op("MatMul", norm(x, "model.norm.weight"), g.op("Transpose", "model.embed_tokens.weight", perm=[1, 0]), out="logits")

    def tensor(name: str, kind: int, *dims) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, ["batch_size", *dims])

    def caches(prefix: str, length: str) -> list[onnx.ValueInfoProto]:
        return [tensor(f"{prefix}.{n}.{part}", TensorProto.FLOAT, groups, length, size) for n in range(layers) for part in ("key", "value")]

    graph = helper.make_graph(
        g.nodes,
        "tale-gpt",
        [
            tensor("input_ids", TensorProto.INT64, "sequence_length"),
            tensor("attention_mask", TensorProto.INT64, "total_sequence_length"),
            tensor("position_ids", TensorProto.INT64, "sequence_length"),
            *caches("past_key_values", "past_sequence_length"),
        ],
        [tensor("logits", TensorProto.FLOAT, "sequence_length", config["vocab_size"]), *caches("present", "total_sequence_length")],
        [numpy_helper.from_array(value, name) for name, value in g.constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    path.parent.mkdir(exist_ok=True)
    onnx.save(model, str(path))
