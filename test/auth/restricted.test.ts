/**
 * Restricted APIs: every declared path and every method of gRPC that is a part of one asks for its
 * header, beside the key.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scopes } from "../../gateway/auth/owner/scopes.js";
import { tritonApis, type Api } from "../../gateway/auth/restricted-apis.js";
import { reflectionAccess, streamAccess, unaryMethods } from "../../gateway/doors/grpc/methods.js";
import { endpoints } from "../../gateway/endpoints.js";
import { rawPost, statusesIn } from "../fixtures/requests.js";
import { GrpcClient, HEALTH, int32s } from "../protocols/grpc/client.js";
import { freePort } from "../support/brokers/port.js";
import { root } from "../support/fleet/root.js";
import { rawExchange } from "../support/gateway/http.js";
import { answerText } from "../support/answer-text.js";
import { readSocket } from "../support/streams/websocket.js";
import { useFolder, useKeyedFleet, type Key } from "./keyed.js";

const fleet = useKeyedFleet({ models: ["echo-int32"], direct: true });
const folder = useFolder();
/** The header and the secret of each API. */
const admin = { "Admin-Key": "hush=admin" };
const other = { "other-header": "hush v2" };
const most = tritonApis.filter((api) => api !== "inference").join();
const RESTRICTED = `${most}:Admin-Key=hush=admin;inference:other-header=hush v2`;
const headersOf = (api: Api): Readonly<Record<string, string>> => (api === "inference" ? other : admin);
const nameOf = (api: Api): string => (api === "inference" ? "other-header" : "Admin-Key");

let gateway: Awaited<ReturnType<typeof launch>>;
let key: Key;
let grpc: GrpcClient;
beforeAll(async () => {
  const file = join(folder, "restricted");
  writeFileSync(file, `${RESTRICTED}\n`, { mode: 0o600 });
  gateway = await launch({ BATON_RESTRICTED_APIS_FILE: file });
  key = await fleet.make({ scopes });
  grpc = new GrpcClient(gateway.grpc);
});
afterAll(() => grpc.close());

/** Starts another gateway of the fleet. */
async function launch(env: Readonly<Record<string, string>>) {
  const [port, grpcPort] = [await freePort(), await freePort()];
  const log = join(folder, `access-${port}.log`);
  const process = fleet.served.fleet.launch("gateway/main.js", {
    BATON_HTTP_PORT: String(port),
    BATON_GRPC_PORT: String(grpcPort),
    BATON_GRPC_REFLECTION: "true",
    BATON_ACCESS_LOG: log,
    ...env,
  });
  await process.waitForMessage("gateway listening");
  return { url: `http://127.0.0.1:${port}`, port, grpc: `127.0.0.1:${grpcPort}`, log };
}

async function ask(path: string, headers: Readonly<Record<string, string>>, init: RequestInit = {}) {
  const response = await fetch(`${gateway.url}${path}`, { ...init, headers });
  return { status: response.status, text: await answerText(response) };
}

/** A path that a client could ask, with names for the segments that clients choose. */
const asked = (path: string): string =>
  path
    .replaceAll(/:version\{[^}]*\}/g, "1")
    .replaceAll(":model", "echo-int32")
    .replaceAll(/:\w+/g, "none");

const isRestricted = expect.stringMatching(/"code":"restricted_api"/) as string;

describe("every declared path", () => {
  it("of an API is restricted, and no other is", () => {
    const free = endpoints.filter(({ api }) => api === "none").map(({ path }) => path);
    expect([...new Set(free.map((path) => path.split("/").slice(0, 3).join("/")))]).toEqual([
      "/v2/fleet",
      "/v2/settings",
      "/v2/asyncapi.json",
      "/openapi.json",
      "/v2/whoami",
      "/v2/keys",
      "/v2/tickets",
      "/v2/tenants",
      "/console",
      "/console/",
      "/console/:file",
    ]);
    expect(new Set(endpoints.map(({ api }) => api))).toEqual(new Set([...tritonApis, "none"]));
    // Whatever runs a model, or shows what came of it, is inference under any name.
    const running = endpoints.filter(({ right }) => right === "infer" || right === "jobs" || right === "sequences");
    expect(new Set(running.map(({ api }) => api))).toEqual(new Set(["inference"]));
  });

  it.each(endpoints.map((one) => [one.method, one.path, one.api] as const))("%s %s", async (method, path, api) => {
    const at = asked(path);
    const without = await ask(at, key.headers, { method });
    if (api === "none") return expect(without.text).not.toEqual(isRestricted);
    const text = `This API is restricted, expecting header '${nameOf(api)}'`;
    const [status, body] = [403, path.startsWith("/v1/") ? expect.stringContaining(text) : undefined];
    expect(without).toEqual({ status, text: body ?? JSON.stringify({ error: text, code: "restricted_api" }) });
    const wrong = { [nameOf(api)]: "hush", ...(api === "inference" ? admin : other) };
    expect((await ask(at, { ...key.headers, ...wrong }, { method })).text).toContain("restricted_api");
    expect((await ask(at, { ...key.headers, ...headersOf(api) }, { method })).text).not.toContain("restricted_api");
  });

  it("asks for a key beside the header, never in its place", async () => {
    const { status, text } = await ask("/v2/models/echo-int32/config", admin);
    expect([status, text]).toEqual([401, expect.stringContaining("missing_api_key")]);
    expect((await ask("/v2/health/live", {})).status).toBe(403);
    expect((await ask("/v2/health/live", admin)).status).toBe(200);
  });
});

describe("an inference", () => {
  const path = "/v2/models/echo-int32/infer";
  const data = (count: number) =>
    JSON.stringify({
      inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, count], data: Array<number>(count).fill(1) }],
    });

  it.each([
    ["parsed on the socket", []],
    ["parsed by node", ["X:1"]],
  ])("%s needs the header", async (_, more) => {
    const authorization = `Authorization: ${key.headers.authorization}`;
    const send = (...fields: string[]) =>
      rawExchange(gateway.port, rawPost(path, data(1), [...more, authorization, ...fields, "Connection: close"]));
    expect(statusesIn(await send())).toEqual([403]);
    expect(statusesIn(await send("other-header: hush"))).toEqual([403]);
    expect(statusesIn(await send("other-header: hush v2"))).toEqual([200]);
    expect(statusesIn(await send("OTHER-HEADER: hush v2"))).toEqual([200]);
    expect(statusesIn(await send("other-header: hush v2", "other-header: hush v2"))).toEqual([403]);
  });

  it("is not read by a WebSocket without the header", async () => {
    const socket = { gateway: gateway.url, path: "/v2/requests/none/ws", onRecord: () => true };
    const refused = await readSocket({ ...socket, headers: key.headers });
    expect(refused).toMatchObject({ kind: "answered", status: 403, body: isRestricted });
    expect(await readSocket({ ...socket, headers: { ...key.headers, ...other } })).toMatchObject({ status: 404 });
  });
});

describe("every method of gRPC", () => {
  const prefixed = (headers: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(headers).map(([name, value]) => [`triton-grpc-protocol-${name}`, value]));
  const restriction = (api: Api) => ({
    status: 14,
    details: `This protocol is restricted, expecting header 'triton-grpc-protocol-${nameOf(api)}'`,
  });

  it.each(Object.entries(unaryMethods))("%s", async (name, { api }) => {
    const { status, details, trailers } = await grpc.call(name, {}, { headers: { ...key.headers, ...headersOf(api) } });
    expect({ status, details }).toEqual(restriction(api));
    expect(trailers["baton-code"]).toBe("restricted_api");
    const good = await grpc.call(name, {}, { headers: { ...key.headers, ...prefixed(headersOf(api)) } });
    expect(good.trailers["baton-code"]).not.toBe("restricted_api");
  });

  it("and the streams", async () => {
    const refused = grpc.stream(key.headers);
    refused.call.end();
    const { code, details } = await refused.ended;
    expect({ status: code, details }).toEqual(restriction(streamAccess.api));
    const good = grpc.stream({ ...key.headers, ...prefixed(other) });
    good.send({
      model_name: "echo-int32",
      inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1] }],
      raw_input_contents: [int32s(1)],
    });
    expect(await good.finish()).toMatchObject([{ error_message: "" }]);
  });

  it("and health and reflection", async () => {
    const check = (headers: object) =>
      grpc.call("Check", {}, { service: HEALTH, headers: { ...key.headers, ...headers } });
    expect(await check({})).toMatchObject(restriction("health"));
    expect(await check(prefixed(admin))).toMatchObject({ message: { status: "SERVING" } });
    expect(reflectionAccess).toEqual({ api: "metadata", open: "metadata" });
  });
});

describe("the secrets", () => {
  it("are in no log and on no page", async () => {
    const { text } = await ask("/v2/settings", { ...key.headers });
    expect(text).toContain('"name":"BATON_RESTRICTED_APIS"');
    expect(text).not.toContain("hush");
    const given = await launch({ BATON_RESTRICTED_APIS: RESTRICTED });
    const settings = await fetch(`${given.url}/v2/settings`, { headers: key.headers });
    const shown = await settings.text();
    expect(shown).toContain('{"name":"BATON_RESTRICTED_APIS","value":"set","default":null,"given":true}');
    expect(shown).not.toContain("hush");
    expect(readFileSync(gateway.log, "utf8")).toContain('"code":"restricted_api"');
    expect(readFileSync(gateway.log, "utf8")).not.toContain("hush");
  });

  it("are not in the message of a gateway that does not start", () => {
    const env = { ...process.env, BATON_RESTRICTED_APIS: "inference:key=hush;modelrepo:key=hush" };
    const { status, stderr } = spawnSync(process.execPath, [join(root, "dist/gateway/main.js")], {
      env,
      encoding: "utf8",
    });
    expect(status).toBe(78);
    expect(stderr).toContain("BATON_RESTRICTED_APIS: group 2 names an API 'modelrepo' that does not exist");
    expect(stderr).not.toContain("hush");
  });
});
