"""Drives a gateway with the unmodified Triton HTTP client for Python. Usage: triton_http.py
host:port; prints OK when every answer was right.

Needs `tritonclient` with its HTTP extra (numpy, gevent, geventhttpclient, rapidjson); TRITONCLIENT
may name the folder that holds the package.
"""
import os
import sys

if os.environ.get("TRITONCLIENT"):
    sys.path.insert(0, os.environ["TRITONCLIENT"])
import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

client = triton.InferenceServerClient(sys.argv[1])


def tensor(name, values, binary=True):
    made = triton.InferInput(name, list(values.shape), {"int32": "INT32", "int64": "INT64"}[values.dtype.name])
    made.set_data_from_numpy(values, binary_data=binary)
    return made


def refused(text, model, inputs, **options):
    try:
        client.infer(model, inputs, **options)
    except InferenceServerException as error:
        assert text in error.message(), error.message()
    else:
        raise AssertionError(f"{model} accepted what it should refuse: {text}")


def health_and_metadata():
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("simple")
    assert client.get_server_metadata()["name"] == "baton"
    metadata = client.get_model_metadata("simple")
    assert metadata["inputs"][0] == {"name": "INPUT0", "datatype": "INT32", "shape": [-1, 16]}, metadata
    assert client.get_model_config("accumulate")["max_batch_size"] == 32
    assert {"name": "simple", "version": "1", "state": "READY"} in client.get_model_repository_index()


def json_and_binary_in_any_mix():
    left, right = np.arange(16, dtype=np.int32).reshape(1, 16), np.ones((1, 16), np.int32)
    for binary in (True, False):
        inputs = [tensor("INPUT0", left, binary), tensor("INPUT1", right, not binary)]
        named = [
            triton.InferRequestedOutput("OUTPUT0", binary_data=binary),
            triton.InferRequestedOutput("OUTPUT1", binary_data=not binary),
        ]
        for outputs in (None, named):
            for compression in (None, "gzip", "deflate"):
                answer = client.infer(
                    "simple",
                    inputs,
                    outputs=outputs,
                    request_id="1",
                    request_compression_algorithm=compression,
                    response_compression_algorithm=compression,
                )
                assert answer.get_response()["id"] == "1"
                assert (answer.as_numpy("OUTPUT0") == left + right).all()
                assert (answer.as_numpy("OUTPUT1") == left - right).all()
    pending = [client.async_infer("simple", inputs) for _ in range(8)]
    assert all((one.get_result().as_numpy("OUTPUT0") == left + right).all() for one in pending)


def sequences_with_integer_ids():
    for correlation in (42, 2**63 + 1, 2**64 - 1):
        total = 0
        for step, value in enumerate([5, 6, 7]):
            answer = client.infer(
                "accumulate",
                [tensor("INPUT", np.array([[value]], np.int32))],
                sequence_id=correlation,
                sequence_start=step == 0,
                sequence_end=step == 2,
            )
            total += value
            assert answer.as_numpy("OUTPUT")[0][0] == total
            assert int(answer.as_numpy("CORRID_OUT")[0][0]) == correlation


def sequences_with_string_ids():
    def chain(correlation):
        return [
            int(
                client.infer(
                    "chain",
                    [tensor("INPUT", np.array([[step]], np.int64))],
                    sequence_id=correlation,
                    sequence_start=step == 0,
                    sequence_end=step == 3,
                ).as_numpy("OUTPUT")[0][0]
            )
            for step in range(4)
        ]

    assert chain("a string: {with} any|thing *") == chain("x" * 128) == chain(42)


def refusals():
    one = [tensor("INPUT", np.array([[1]], np.int32))]
    refused("must specify the START flag on the first request of the sequence", "accumulate", one, sequence_id=4711)
    refused("sequence batching control 'CORRID' data-type is 'BYTES'", "accumulate", one, sequence_id="s", sequence_start=True)
    refused("must specify a non-zero or non-empty correlation ID", "accumulate", one)
    refused("Request for unknown model: 'nope' is not found", "nope", one)
    refused("expected 2 inputs but got 1 inputs for model 'simple'", "simple", [tensor("INPUT0", np.zeros((1, 16), np.int32))])
    refused("unexpected inference input 'INPUT'", "simple", one + [tensor("INPUT1", np.zeros((1, 16), np.int32))])


health_and_metadata()
json_and_binary_in_any_mix()
sequences_with_integer_ids()
sequences_with_string_ids()
refusals()
print("OK")
