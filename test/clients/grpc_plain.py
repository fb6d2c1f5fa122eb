"""Drives a gateway with the gRPC library for Python, whose core is that of C++, as Triton's client
does. Usage: grpc_plain.py host:port; prints OK when every answer was right.

Needs `grpc` alone (Debian's python3-grpcio): the messages are written and read here by hand.
"""
import struct
import sys
import threading

import grpc

SERVICE = "/inference.GRPCInferenceService/"


def varint(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """A field of bytes, of a text, or of an integer."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def read_varint(raw, at):
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(raw):
    """The fields of a message: lists of values by number."""
    found, at = {}, 0
    while at < len(raw):
        tag, at = read_varint(raw, at)
        if tag & 7 == 0:
            value, at = read_varint(raw, at)
        else:
            assert tag & 7 == 2, tag
            length, at = read_varint(raw, at)
            value, at = raw[at : at + length], at + length
        found.setdefault(tag >> 3, []).append(value)
    return found


def parameter(name, value):
    number = 1 if isinstance(value, bool) else 2 if isinstance(value, int) else 3
    return field(4, field(1, name) + field(2, field(number, int(value) if number < 3 else value)))


def request(model, values, **parameters):
    tensor = field(1, "INPUT") + field(2, "INT32") + field(3, 1) + field(3, len(values))
    given = b"".join(parameter(name, value) for name, value in parameters.items())
    raw = struct.pack(f"<{len(values)}i", *values)
    return field(1, model) + field(3, "r") + given + field(5, tensor) + field(7, raw)


def first(answer):
    return struct.unpack("<i", fields(answer)[6][0][:4])[0]


channel = grpc.insecure_channel(sys.argv[1])
infer = channel.unary_unary(SERVICE + "ModelInfer")
stream = channel.stream_stream(SERVICE + "ModelStreamInfer")


def failure(call):
    try:
        call()
    except grpc.RpcError as error:
        return error
    raise AssertionError("the call has succeeded")


def health():
    check = channel.unary_unary("/grpc.health.v1.Health/Check")
    assert fields(check(b"")) == {1: [1]}
    assert fields(channel.unary_unary(SERVICE + "ServerReady")(b"")) == {1: [1]}


def calls():
    answer, call = infer.with_call(request("echo-int32", [7]), metadata=[("x-request-id", "of-python")])
    assert fields(answer)[1] == [b"echo-int32"] and fields(answer)[3] == [b"r"], answer
    assert first(answer) == 7
    assert dict(call.trailing_metadata())["x-request-id"] == "of-python"


def compression():
    for kind in (grpc.Compression.Gzip, grpc.Compression.Deflate):
        # Large enough for the library to compress it, and for HTTP/2 to cut it.
        answer = infer(request("echo-int32", [5] * 100_000), compression=kind)
        assert fields(answer)[6] == [struct.pack("<i", 5) * 100_000]


def sequences():
    steps = (
        request("accumulate", [i + 1], sequence_id=77, sequence_start=i == 0, sequence_end=i == 9) for i in range(10)
    )
    answers = [fields(message) for message in stream(steps)]
    assert all(1 not in answer for answer in answers), answers
    assert [first(answer[2][0]) for answer in answers] == [sum(range(1, i + 2)) for i in range(10)]


def errors():
    error = failure(lambda: infer(request("none", [1])))
    assert error.code() == grpc.StatusCode.NOT_FOUND, error
    assert error.details() == "Request for unknown model: 'none' is not found"
    assert dict(error.trailing_metadata())["baton-code"] == "unknown_model"
    error = failure(lambda: infer(request("é😀" * 4_000, [1])))
    assert error.code() == grpc.StatusCode.NOT_FOUND and "é😀é" in error.details(), error
    (answer,) = stream(iter([request("none", [1])]))
    assert fields(answer)[1] == [b"Request for unknown model: 'none' is not found"]


def deadlines():
    # Nothing but its deadline ends a stream whose client sends nothing and stays.
    over = threading.Event()
    idle = stream(iter(over.wait, True), timeout=0.5)
    error = failure(lambda: list(idle))
    over.set()
    assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error
    assert first(infer(request("echo-int32", [8]), timeout=30)) == 8


health()
calls()
compression()
sequences()
errors()
deadlines()
print("OK")
