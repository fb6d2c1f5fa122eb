"""The tutorials' two programs, with the unmodified Triton HTTP client for Python.

Usage: triton_tutorial.py host:port. Prints a line of JSON: the outputs of `my_lstm_model` for each
sequence and step, and the text of the generator.
"""
import json
import os
import sys

if os.environ.get("TRITONCLIENT"):
    sys.path.insert(0, os.environ["TRITONCLIENT"])
import numpy as np
import tritonclient.http as triton

SEQUENCES, STEPS = 5, 6

client = triton.InferenceServerClient(sys.argv[1], concurrency=SEQUENCES)


def vector(sequence, step):
    """The same numbers as `vectorOf` in tutorial.test.ts."""
    return np.array([[((sequence * 31 + step * 7 + i * 13) % 17 - 8) / 8 for i in range(128)]], np.float32)


def steps_of_lstm():
    """Sends only sequence ids, and the steps of all sequences at once."""
    outputs = [[] for _ in range(SEQUENCES)]
    for step in range(STEPS):
        pending = []
        for sequence in range(SEQUENCES):
            given = triton.InferInput("INPUT__0", [1, 128], "FP32")
            given.set_data_from_numpy(vector(sequence, step))
            pending.append(client.async_infer("my_lstm_model", [given], sequence_id=sequence + 1001))
        for sequence, one in enumerate(pending):
            outputs[sequence].append(one.get_result().as_numpy("OUTPUT__0").tolist())
    return outputs


def text_of_generator():
    given = triton.InferInput("TEXT", [1, 1], "BYTES")
    given.set_data_from_numpy(np.array([[b"once upon"]], dtype=np.object_))
    answer = client.infer("gen-cheap", [given], parameters={"max_tokens": 8, "stream": True, "temperature": 0})
    text = answer.as_numpy("TEXT")
    assert text.shape == (1, 1), text.shape
    return text[0][0].decode()


config = client.get_model_config("my_lstm_model")
assert config["sequence_batching"]["oldest"]["preferred_batch_size"] == [4, 8], config
print(json.dumps({"steps": steps_of_lstm(), "text": text_of_generator()}))
