/** The paths beside infer, and the common parts of every reply: statuses, error bodies, ids. */
import { describe, expect, it } from "vitest";
import { directoryOf } from "../../../gateway/fleet/models.js";
import { InferenceError } from "#shared/errors.js";
import { TestGateway, useGateway } from "../../support/gateway/test-gateway.js";
import { exchange } from "../../support/gateway/http.js";
import { announcementOf, servedModel } from "../../fixtures/served-models.js";

let ready = true;
let fleet: () => Promise<unknown>;
const config = { name: "typed", version_policy: { latest: { num_versions: 1 } }, max_queue_size: 2n ** 63n };
const typed = servedModel("typed", {
  maxBatchSize: 8,
  inputs: [{ name: "INPUT0", datatype: "FP32", dims: [-1, 3] }],
  outputs: [{ name: "OUTPUT0", datatype: "BYTES", dims: [] }],
  config,
});
const directory = directoryOf([
  announcementOf(
    [typed, servedModel("flat", { version: "2" }), servedModel("flat", { version: "10" }), servedModel("stats")],
    [
      { name: "broken", version: "3", reason: "no such file" },
      { name: "empty", reason: "no version" },
    ],
  ),
  announcementOf([servedModel("stats", { digest: "b" })]),
]);
const loadOf = () => Promise.resolve({ requests: 0, bytes: 0 });
const targets = () => Promise.resolve([]);
const history = () => Promise.resolve({ step_ms: 5_000, at: [], series: {} });
const others = { targets, loadOf, history };
const gateway = useGateway({ fleet: { directory, describe: () => fleet(), ...others }, isReady: () => ready });
const bare = useGateway({
  fleet: { directory: directoryOf([]), describe: () => Promise.resolve({}), ...others },
});

async function ask(path: string, method = "GET", body = ""): Promise<[status: number, body: unknown]> {
  const { status, json } = await exchange(`${gateway.url}${path}`, body, {}, method);
  return [status, json === "" ? "" : JSON.parse(json)];
}

describe("server and model metadata", () => {
  it("names the server, its version and what it can do", async () => {
    expect(await ask("/v2")).toEqual([
      200,
      {
        name: "baton",
        version: "1.2.3",
        extensions: [
          "classification",
          "sequence",
          "model_repository",
          "model_repository(unload_dependents)",
          "schedule_policy",
          "model_configuration",
          "binary_tensor_data",
          "parameters",
          "statistics",
          "trace",
          "logging",
        ],
      },
    ]);
  });

  it("names the server as it was told to", async () => {
    const triton = await TestGateway.start({ serverName: "triton" });
    const { json } = await exchange(`${triton.url}/v2`, "", {}, "GET");
    await triton.server.close(0);
    expect(JSON.parse(json)).toMatchObject({ name: "triton", version: "1.2.3" });
  });

  it("puts the batch dimension first where there is one", async () => {
    expect(await ask("/v2/models/typed?ignored=1")).toEqual([
      200,
      {
        name: "typed",
        versions: ["1"],
        platform: "onnxruntime_onnx",
        inputs: [{ name: "INPUT0", datatype: "FP32", shape: [-1, -1, 3] }],
        outputs: [{ name: "OUTPUT0", datatype: "BYTES", shape: [-1] }],
      },
    ]);
    const [, flat] = await ask("/v2/models/flat");
    expect(flat).toMatchObject({ versions: ["2", "10"], inputs: [{ shape: [-1] }] });
    expect((await ask("/v2/models/flat/versions/2"))[1]).toMatchObject({ versions: ["2"] });
  });

  it("prints the config with 64-bit numbers", async () => {
    const { json } = await exchange(`${gateway.url}/v2/models/typed/config`, "", {}, "GET");
    expect(json).toBe(
      '{"name":"typed","version_policy":{"latest":{"num_versions":1}},"max_queue_size":9223372036854775808}',
    );
    expect((await ask("/v2/models/typed/versions/1/config"))[0]).toBe(200);
  });
});

describe("health", () => {
  it("is live, and ready while requests are admitted and a model is served", async () => {
    expect(await ask("/v2/health/live")).toEqual([200, ""]);
    expect(await ask("/v2/health/ready")).toEqual([200, ""]);
    ready = false;
    expect(await ask("/v2/health/ready")).toEqual([400, ""]);
    expect(await ask("/v2/health/live")).toEqual([200, ""]);
    ready = true;
    expect((await exchange(`${bare.url}/v2/health/ready`, "", {}, "GET")).status).toBe(400);
  });

  it("of a model is whether it is served", async () => {
    expect(await ask("/v2/models/flat/ready")).toEqual([200, ""]);
    expect(await ask("/v2/models/flat/versions/2/ready")).toEqual([200, ""]);
    expect((await ask("/v2/models/flat/versions/3/ready"))[0]).toBe(404);
    expect((await ask("/v2/models/broken/versions/3/ready"))[0]).toBe(503);
    expect((await ask("/v2/models/x/ready"))[0]).toBe(404);
  });
});

describe("the repository", () => {
  const ready = [
    { name: "flat", version: "2", state: "READY" },
    { name: "flat", version: "10", state: "READY" },
    { name: "stats", version: "1", state: "READY" },
    { name: "typed", version: "1", state: "READY" },
  ];
  const failed = [
    { name: "broken", version: "3", state: "UNAVAILABLE", reason: "no such file" },
    { name: "empty", state: "UNAVAILABLE", reason: "no version" },
  ];
  it.each([
    ["", [...ready, ...failed]],
    ["{}", [...ready, ...failed]],
    ['{"ready":false}', [...ready, ...failed]],
    ['{"ready":true}', ready],
  ])("answers '%s' with its index", async (body, index) => {
    expect(await ask("/v2/repository/index", "POST", body)).toEqual([200, index]);
    expect(await ask("/v2/repository/any/index", "POST", body)).toEqual([200, index]);
  });

  it("refuses another body, and loading", async () => {
    expect((await ask("/v2/repository/index", "POST", "[]"))[1]).toMatchObject({ code: "invalid_json" });
    const error = "Invalid value for 'ready': expected a boolean";
    for (const ready of ["1", '"true"', "null", "[true]"]) {
      expect(await ask("/v2/repository/index", "POST", `{"ready":${ready}}`)).toEqual([
        400,
        { error, code: "invalid_argument" },
      ]);
    }
    const refusal = { error: "explicit model load / unload is not allowed if polling is enabled", code: "unsupported" };
    expect(await ask("/v2/repository/models/typed/load", "POST")).toEqual([503, refusal]);
    expect(await ask("/v2/repository/models/typed/unload", "POST", "{}")).toEqual([503, refusal]);
    expect(await ask("/v2/repository/r/models/typed/load", "POST")).toEqual([
      501,
      { error: "'repository_name' specification is not supported", code: "unsupported" },
    ]);
  });
});

describe("a path that is not served", () => {
  it.each([
    ["POST", "/v2/repository/r/models/typed/load"],
    ["POST", "/v2/systemsharedmemory/region/r/register"],
    ["POST", "/v2/cudasharedmemory/unregister"],
  ])("%s %s is unsupported", async (method, path) => {
    const [status, body] = await ask(path, method);
    expect([status, (body as { code: string }).code]).toEqual([501, "unsupported"]);
  });

  it("has no shared memory regions", async () => {
    expect(await ask("/v2/systemsharedmemory/status")).toEqual([200, []]);
    expect(await ask("/v2/cudasharedmemory/region/r/status")).toEqual([200, []]);
  });

  it.each([
    "/",
    "/v2/",
    "/v1",
    "/v2/health",
    "/v2/health/live/",
    "/v2/models/typed/",
    "/v2/models/typed/ready/",
    "/v2/models",
    "/v2/models/typed/versions/1/trace/setting",
    "/v2%2Fhealth%2Flive",
    "/V2",
  ])("%s is not found", async (path) => {
    expect(await ask(path)).toEqual([404, { error: "Not Found", code: "not_found" }]);
    expect((await ask(path, "POST"))[0]).toBe(404);
  });

  it.each([
    ["POST", "/v2"],
    ["PUT", "/v2/health/live"],
    ["GET", "/v2/models/typed/infer"],
    ["DELETE", "/v2/models/typed/versions/1/infer"],
    ["POST", "/v2/models/typed"],
    ["GET", "/v2/repository/index"],
    ["PATCH", "/v2/cudasharedmemory/status"],
    ["OPTIONS", "/v2/fleet"],
  ])("%s %s is not allowed", async (method, path) => {
    expect(await ask(path, method)).toEqual([405, { error: "Method Not Allowed", code: "method_not_allowed" }]);
  });

  it("is not reached by naming another method in a header", async () => {
    const override = { "x-http-method-override": "POST" };
    expect((await exchange(`${gateway.url}/v2/models/typed/infer`, "", override, "GET")).status).toBe(405);
  });

  it("answers HEAD as GET, without the body", async () => {
    const { status, headers, json } = await exchange(`${gateway.url}/v2`, "", {}, "HEAD");
    expect([status, json, headers["content-type"]]).toEqual([200, "", "application/json"]);
  });
});

describe("the fleet", () => {
  it("is shown as it is", async () => {
    fleet = () => Promise.resolve({ workers: ["w.1"], steps: Number.MAX_SAFE_INTEGER });
    expect(await ask("/v2/fleet")).toEqual([200, { workers: ["w.1"], steps: Number.MAX_SAFE_INTEGER }]);
  });

  it("may be out of reach", async () => {
    fleet = () => Promise.reject(new InferenceError("unavailable", "the fleet's state cannot be read"));
    const { status, headers } = await exchange(`${gateway.url}/v2/fleet`, "", {}, "GET");
    expect([status, headers["retry-after"]]).toEqual([503, "1"]);
  });

  it("may fail, and says nothing of how", async () => {
    fleet = () => Promise.reject(new Error("redis://secret"));
    expect(await ask("/v2/fleet")).toEqual([500, { error: "internal error", code: "internal" }]);
    expect(gateway.logged).toHaveLength(1);
  });
});

describe("x-request-id", () => {
  const idOf = async (given?: string, path = "/v2"): Promise<string | undefined> => {
    const headers: Record<string, string> = given === undefined ? {} : { "x-request-id": given };
    return (await exchange(`${gateway.url}${path}`, "", headers, "GET")).headers["x-request-id"];
  };

  it("is the client's own, on every reply", async () => {
    const longest = "a".repeat(128);
    expect(
      await Promise.all([idOf("A.b_c-1"), idOf(longest), idOf("r", "/nowhere"), idOf("r", "/v2/models/x")]),
    ).toEqual(["A.b_c-1", longest, "r", "r"]);
  });

  it.each([undefined, "", "a b", "a".repeat(129), "{}", "ä"])("is made where the client's is '%s'", async (given) => {
    expect(await idOf(given)).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
  });
});
