"""Builds the graph of a small decoder-only language model with random, seeded weights, and names its inputs and outputs
as Hugging Face's exports do: past_key_values.N.key/value go in, present.N.key/value come out, longer by the new tokens.

A key whose attention_mask is 0 gets a weight of exactly zero, and a query that may attend to nothing gets zeros.
"""

from dataclasses import dataclass
from typing import Optional

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Learned positions are the sum of two short tables, rows p / PAGE and p % PAGE, so that the file stays small. As with
# one table, a position that the model does not have is an error of Gather.
PAGE = 64


@dataclass(frozen=True)
class Shape:
    name: str
    seed: int
    bias: np.ndarray  # what is added to each token's logit; its length is the vocabulary's
    hidden: int = 64
    layers: int = 2
    heads: int = 4
    kv_heads: int = 4
    head: int = 16
    context: int = 4096
    places: str = "learned"  # how tokens are placed: "learned", "rope", or "sine" (added to the embedding, no table)
    positions: str = "input"  # where from: "input" (position_ids), "mask" (counted in attention_mask), "past" (length)
    half: bool = False
    quantized: bool = False
    keep: bool = False  # an input num_logits_to_keep
    full: bool = True  # norms and feed-forward layers; without them a layer is attention only
    cache: bool = True  # past_key_values and present
    poison: Optional[int] = None  # the id of the token that kills the process
    computed: bool = False  # weights of products are computed when the model is loaded, so a large model is a small file
    spread: float = 2.3  # standard deviation of the logits, before the bias


class Decoder:
    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.random = np.random.RandomState(shape.seed)
        self.nodes: list = []
        self.constants: dict = {}
        self.dtype = np.float16 if shape.half else np.float32
        self.tensor = TensorProto.FLOAT16 if shape.half else TensorProto.FLOAT

    def ops(self, kind: str, inputs: list, outputs: list, **attributes) -> list:
        self.nodes.append(helper.make_node(kind, inputs, outputs, **attributes))
        return outputs

    def op(self, kind: str, *inputs: str, **attributes) -> str:
        return self.ops(kind, list(inputs), [f"{kind}_{len(self.nodes)}"], **attributes)[0]

    def constant(self, name: str, value: np.ndarray) -> str:
        self.constants[name] = numpy_helper.from_array(value, name)
        return name

    def ints(self, *values: int) -> str:
        return self.constant("ints_" + "_".join(map(str, values)), np.array(values, np.int64))

    def integer(self, value: int) -> str:
        return self.constant(f"integer_{value}", np.array(value, np.int64))

    def number(self, value: float) -> str:
        return self.constant(f"number_{value}", np.array(value, self.dtype))

    def normal(self, shape: tuple, deviation: float) -> np.ndarray:
        return (self.random.standard_normal(shape) * deviation).astype(self.dtype)

    def matmul(self, x: str, name: str, rows: int, columns: int, gain: float = 1) -> str:
        if self.shape.computed:
            return self.op("MatMul", x, self.computed(rows, columns, gain / rows**0.5))
        weight = self.normal((rows, columns), gain / rows**0.5)
        if not self.shape.quantized:
            return self.op("MatMul", x, self.constant(name, weight))
        # As ONNX Runtime's dynamic quantization writes it. 7 bits: with 8, sums saturate on processors without VNNI.
        scale = np.abs(weight).max() / np.float32(63)
        data = self.constant(f"{name}_quantized", np.rint(weight / scale).astype(np.int8))
        zero = self.constant(f"{name}_zero_point", np.array(0, np.int8))
        outputs = [f"{name}_input_{part}" for part in ("quantized", "scale", "zero_point")]
        x_data, x_scale, x_zero = self.ops("DynamicQuantizeLinear", [x], outputs)
        product = self.op("Cast", self.op("MatMulInteger", x_data, data, x_zero, zero), to=TensorProto.FLOAT)
        return self.op("Mul", product, self.op("Mul", x_scale, self.constant(f"{name}_scale", np.array(scale))))

    def computed(self, rows: int, columns: int, deviation: float) -> str:
        """Uniform numbers out of the squares modulo a prime. ONNX Runtime folds them into a constant when it loads the model."""
        prime, start = 65521, int(self.random.randint(65521))
        index = self.op("Range", self.integer(start), self.integer(start + rows * columns), self.integer(1))
        drawn = self.op("Mod", self.op("Mul", self.op("Mul", index, index), self.integer(7919)), self.integer(prime))
        centred = self.op("Sub", self.op("Cast", drawn, to=self.tensor), self.number((prime - 1) / 2))
        uniform = self.op("Mul", centred, self.number(deviation * 12**0.5 / prime))
        return self.op("Reshape", uniform, self.ints(rows, columns))

    def norm(self, x: str, name: str) -> str:
        scale = self.constant(f"{name}.weight", np.ones(self.shape.hidden, self.dtype))
        return self.op("LayerNormalization", x, scale, axis=-1, epsilon=1e-5)

    def positions(self) -> str:
        if self.shape.positions == "input":
            return "position_ids"
        if self.shape.positions == "past":
            return self.new
        counted = self.op("Sub", self.op("CumSum", "attention_mask", self.integer(1)), self.integer(1))
        every = self.op("Max", counted, self.integer(0))
        one = self.ints(1)
        return self.op("Slice", every, self.op("Reshape", self.past, one), self.op("Reshape", self.total, one), one)

    def angles(self, positions: str, frequencies: np.ndarray) -> str:
        column = self.op("Cast", self.op("Unsqueeze", positions, self.ints(-1)), to=TensorProto.FLOAT)
        return self.op("Mul", column, self.constant("frequencies", frequencies.astype(np.float32)))

    def embed(self, ids: str) -> str:
        shape = self.shape
        table = self.constant("embed_tokens.weight", self.normal((len(shape.bias), shape.hidden), 1))
        x = self.op("Gather", table, ids)
        positions = self.positions()
        if shape.places == "learned":
            for name, rows, kind in (("pages", shape.context // PAGE, "Div"), ("lines", PAGE, "Mod")):
                row = self.op(kind, positions, self.integer(PAGE))
                table = self.constant(f"embed_positions.{name}", self.normal((rows, shape.hidden), 0.6))
                x = self.op("Add", x, self.op("Gather", table, row))
        elif shape.places == "sine":
            frequencies = 0.3 + 2 * self.random.random_sample(shape.hidden)
            x = self.op("Add", x, self.op("Sin", self.angles(positions, frequencies)))
        else:
            angles = self.angles(positions, 10000 ** -np.linspace(0, 1, shape.head // 2, endpoint=False))
            angles = self.op("Unsqueeze", angles, self.ints(2))
            self.turn = [self.op("Cast", self.op(kind, angles), to=self.tensor) for kind in ("Cos", "Sin")]
        return x

    def rotate(self, x: str) -> str:
        if self.shape.places != "rope":
            return x
        (cos, sin), half = self.turn, self.shape.head // 2
        low, high = self.ops("Split", [x, self.ints(half, half)], [f"{x}_low", f"{x}_high"], axis=-1)
        turned_low = self.op("Sub", self.op("Mul", low, cos), self.op("Mul", high, sin))
        turned_high = self.op("Add", self.op("Mul", high, cos), self.op("Mul", low, sin))
        return self.op("Concat", turned_low, turned_high, axis=-1)

    def attention(self, x: str, layer: int) -> str:
        shape, name = self.shape, f"layers.{layer}.attn"
        groups = shape.heads // shape.kv_heads

        def heads(part: str, count: int, gain: float) -> str:
            every = self.matmul(x, f"{name}.{part}", shape.hidden, count * shape.head, gain)
            return self.op("Reshape", every, self.ints(0, 0, count, shape.head))

        # Sharp enough that a token matters after hundreds of others.
        q = self.op("Mul", self.rotate(heads("q", shape.heads, 1.5)), self.number(shape.head**-0.5))
        k, v = self.rotate(heads("k", shape.kv_heads, 1.5)), heads("v", shape.kv_heads, 1)
        cache = []
        for part, new in (("key", k), ("value", v)):
            new = self.op("Transpose", new, perm=[0, 2, 1, 3])
            if shape.cache:
                present = f"present.{layer}.{part}"
                self.ops("Concat", [f"past_key_values.{layer}.{part}", new], [present], axis=2)
                new = present
            cache.append(new if groups == 1 else self.op("Unsqueeze", new, self.ints(2)))
        if groups > 1:
            q = self.op("Reshape", q, self.ints(0, 0, shape.kv_heads, groups, shape.head))
        to_heads, from_heads = ([0, 2, 1, 3],) * 2 if groups == 1 else ([0, 2, 3, 1, 4], [0, 3, 1, 2, 4])
        turned = [0, 1, 3, 2] if groups == 1 else [0, 1, 2, 4, 3]
        q = self.op("Transpose", q, perm=to_heads)
        scores = self.op("MatMul", q, self.op("Transpose", cache[0], perm=turned))
        # Finite, so that a row without any key is no NaN; zeroed afterwards, so that it is no average of all either.
        weights = self.op("Softmax", self.op("Where", self.allowed, scores, self.number(-30000)), axis=-1)
        mixed = self.op("MatMul", self.op("Where", self.allowed, weights, self.number(0)), cache[1])
        flat = self.op("Reshape", self.op("Transpose", mixed, perm=from_heads), self.ints(0, 0, shape.heads * shape.head))
        return self.matmul(flat, f"{name}.o", shape.heads * shape.head, shape.hidden, 1 if shape.full else 2)

    def feed_forward(self, x: str, layer: int) -> str:
        wide = 2 * self.shape.hidden
        up = self.matmul(x, f"layers.{layer}.mlp.up", self.shape.hidden, wide, 1.5)
        gated = self.op("Mul", up, self.op("Sigmoid", up))
        return self.matmul(gated, f"layers.{layer}.mlp.down", wide, self.shape.hidden)

    def poisoned(self) -> str:
        """input_ids times 1 / 1; the poison makes that INT64_MIN / -1 (see pill/make.py)."""
        is_poison = self.op("Equal", "input_ids", self.integer(self.shape.poison))
        dividend = self.op("Where", is_poison, self.integer(-(1 << 63)), self.integer(1))
        divisor = self.op("Where", is_poison, self.integer(-1), self.integer(1))
        return self.op("Mul", "input_ids", self.op("Div", dividend, divisor))

    def build(self) -> onnx.ModelProto:
        shape = self.shape

        def length(name: str, axis: int) -> str:
            return self.op("Gather", self.op("Shape", name), self.integer(axis))

        sequence = length("input_ids", 1)
        self.past = length("past_key_values.0.key", 2) if shape.cache else self.integer(0)
        self.total = self.op("Add", self.past, sequence)
        self.new = self.op("Range", self.past, self.total, self.integer(1))
        keys = self.op("Range", self.integer(0), self.total, self.integer(1))
        causal = self.op("LessOrEqual", keys, self.op("Unsqueeze", self.new, self.ints(1)))
        axes = self.ints(1, 2) if shape.heads == shape.kv_heads else self.ints(1, 2, 3)
        masked = self.op("Unsqueeze", self.op("Cast", "attention_mask", to=TensorProto.BOOL), axes)
        self.allowed = self.op("And", causal, masked)

        x = self.embed("input_ids" if shape.poison is None else self.poisoned())
        for layer in range(shape.layers):
            inner = self.norm(x, f"layers.{layer}.attn_norm") if shape.full else x
            x = self.op("Add", x, self.attention(inner, layer))
            if shape.full:
                x = self.op("Add", x, self.feed_forward(self.norm(x, f"layers.{layer}.mlp_norm"), layer))
        if shape.keep:
            # The last k positions; from 0, with k = 0.
            start = self.op("Reshape", self.op("Neg", "num_logits_to_keep"), self.ints(1))
            x = self.op("Slice", x, start, self.ints((1 << 63) - 1), self.ints(1))
        head = self.matmul(self.norm(x, "norm"), "lm_head", shape.hidden, len(shape.bias), shape.spread)
        self.ops("Add", [head, self.constant("lm_head.bias", shape.bias.astype(self.dtype))], ["logits"])
        return self.model()

    def model(self) -> onnx.ModelProto:
        shape = self.shape

        def ids(name: str, dims: list):
            return helper.make_tensor_value_info(name, TensorProto.INT64, dims)

        def caches(prefix: str, length: str) -> list:
            dims = ["batch_size", shape.kv_heads, length, shape.head]
            names = [f"{prefix}.{layer}.{part}" for layer in range(shape.layers) for part in ("key", "value")]
            return [helper.make_tensor_value_info(name, self.tensor, dims) for name in names if shape.cache]

        inputs = [
            ids("input_ids", ["batch_size", "sequence_length"]),
            ids("attention_mask", ["batch_size", "total_sequence_length"]),
        ]
        if shape.positions == "input":
            inputs.append(ids("position_ids", ["batch_size", "sequence_length"]))
        if shape.keep:
            inputs.append(ids("num_logits_to_keep", []))
        kept = "num_logits_to_keep" if shape.keep else "sequence_length"
        logits = helper.make_tensor_value_info("logits", self.tensor, ["batch_size", kept, len(shape.bias)])
        graph = helper.make_graph(
            self.nodes,
            shape.name,
            [*inputs, *caches("past_key_values", "past_sequence_length")],
            [logits, *caches("present", "total_sequence_length")],
            list(self.constants.values()),
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model
