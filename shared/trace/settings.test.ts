import { describe, expect, it } from "vitest";
import { z } from "zod";
import { parseHeaders, traceSettings, traceUrlOf } from "./settings.js";

const read = (env: object) => z.object(traceSettings).parse(env);

describe("the address of the receiver", () => {
  it.each([
    [
      "of ours first",
      { BATON_TRACE_URL: "http://a/v1/traces", OTEL_EXPORTER_OTLP_ENDPOINT: "http://b" },
      "http://a/v1/traces",
    ],
    [
      "of OpenTelemetry for traces",
      { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://c/t", OTEL_EXPORTER_OTLP_ENDPOINT: "http://b" },
      "http://c/t",
    ],
    ["of OpenTelemetry for all", { OTEL_EXPORTER_OTLP_ENDPOINT: "http://b:4318/" }, "http://b:4318/v1/traces"],
    ["of nobody", {}, undefined],
  ])("is that %s", (_, env, url) => {
    expect(traceUrlOf(read(env))).toBe(url);
  });

  it.each(["jaeger:4318", "grpc://jaeger:4317", "http://", "/v1/traces"])("may not be %s", (url) => {
    expect(() => read({ BATON_TRACE_URL: url })).toThrow("must be an address");
  });
});

describe("headers for the receiver", () => {
  it("are names with values", () => {
    expect(parseHeaders("authorization=Bearer a=b, x-key=1")).toEqual({ authorization: "Bearer a=b", "x-key": "1" });
  });

  it.each(["key", "=value", "key=", "a b=c", "a=1,,b=2", "a=1\nb: 2"])("may not be %j", (text) => {
    expect(parseHeaders(text)).toBeUndefined();
  });
});
