/** Every method of gRPC asks for a key, and for the right that it declares. */
import { once } from "node:events";
import { connect } from "node:http2";
import { afterAll, describe, expect, it } from "vitest";
import { streamAccess, unaryMethods, type Access } from "../../gateway/doors/grpc/methods.js";
import { newKey } from "../../gateway/auth/key.js";
import { hasScope, scopes, usualScopes, type Scope } from "../../gateway/auth/owner/scopes.js";
import { adding } from "../protocols/grpc/frames.js";
import { GrpcClient, HEALTH, int32s, parameters, type Message } from "../protocols/grpc/client.js";
import { useKeyedFleet, type Key } from "./keyed.js";

const fleet = useKeyedFleet({ models: ["echo-int32", "accumulate"], direct: true, grpc: true });
let opened: GrpcClient | undefined;
const client = (): GrpcClient => (opened ??= new GrpcClient(fleet.served.fleet.gateways[0]?.grpc ?? ""));
afterAll(() => opened?.close());

const UNAUTHENTICATED = 16;
const PERMISSION_DENIED = 7;

const shared = new Map<string, Promise<Key>>();
function keyWith(wanted: readonly Scope[]): Promise<Key> {
  const key = shared.get(wanted.join()) ?? fleet.make({ scopes: wanted });
  shared.set(wanted.join(), key);
  return key;
}

const bearer = ({ text }: { readonly text: string }) => ({ authorization: `Bearer ${text}` });
const echo = (model: string): Message => ({
  model_name: model,
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1] }],
  raw_input_contents: [int32s(1)],
});

/** The status of a call, or of a stream that sends nothing. */
async function ask(name: string, headers: Readonly<Record<string, string>> = {}) {
  if (name !== "ModelStreamInfer") {
    const { status, trailers } = await client().call(name, { name: "echo-int32" }, { headers });
    return { status, code: trailers["baton-code"] };
  }
  const stream = client().stream(headers);
  stream.call.end();
  const { code, metadata } = await stream.ended;
  return { status: code, code: metadata.getMap()["baton-code"] };
}

describe("every method", () => {
  const all: [string, Access][] = [...Object.entries(unaryMethods), ["ModelStreamInfer", streamAccess]];
  const guarded = all.filter(([, { open }]) => open === undefined);

  it.each(guarded)("%s", async (name, { right, otherRight = "read" }) => {
    expect(await ask(name)).toEqual({ status: UNAUTHENTICATED, code: "missing_api_key" });
    expect(await ask(name, bearer(newKey()))).toEqual({ status: UNAUTHENTICATED, code: "invalid_api_key" });
    const scope = right ?? otherRight;
    const lacking = await keyWith(scopes.filter((one) => !hasScope(new Set([one]), scope)));
    expect(await ask(name, bearer(lacking))).toEqual({ status: PERMISSION_DENIED, code: "insufficient_scope" });
    expect([UNAUTHENTICATED, PERMISSION_DENIED]).not.toContain(
      (await ask(name, bearer(await keyWith([scope])))).status,
    );
  });

  it("is open if the deployment says so", async () => {
    for (const [name] of all.filter(([, { open }]) => open !== undefined)) {
      expect([name, (await ask(name)).status]).toEqual([name, 0]);
    }
    expect((await client().call("Check", {}, { service: HEALTH })).message).toEqual({ status: "SERVING" });
  });
});

it("a call without a good key is refused at its head, before any of its message comes", async () => {
  const session = connect(`http://${fleet.served.fleet.gateways[0]?.grpc}`);
  const stream = session.request({
    ":method": "POST",
    ":path": "/inference.GRPCInferenceService/ModelInfer",
    "content-type": "application/grpc",
    te: "trailers",
  });
  const [headers] = (await once(stream, "response")) as [Record<string, string>];
  expect(headers["grpc-status"]).toBe(String(UNAUTHENTICATED));
  session.destroy();
});

it("a call with two credentials is refused, whichever comes first", async () => {
  const good = `Bearer ${(await fleet.make({ scopes: usualScopes })).text}`;
  const target = fleet.served.fleet.gateways[0]?.grpc ?? "";
  const statusWith = async (first: string, more: readonly (readonly [string, string])[]) => {
    const session = connect(`http://${target}`, { createConnection: () => adding(target, more) });
    const stream = session.request({
      ":method": "POST",
      ":path": "/inference.GRPCInferenceService/ServerMetadata",
      "content-type": "application/grpc",
      te: "trailers",
      authorization: first,
    });
    stream.end(Buffer.alloc(5));
    let status = "";
    for (const event of ["response", "trailers"]) {
      stream.on(event, (headers: Record<string, string>) => (status ||= headers["grpc-status"] ?? ""));
    }
    await once(stream.resume(), "close");
    session.destroy();
    return Number(status);
  };
  const bad = `Bearer ${newKey().text}`;
  expect(await statusWith(good, [["x-other", bad]])).toBe(0);
  const INVALID_ARGUMENT = 3;
  expect(await statusWith(good, [["authorization", bad]])).toBe(INVALID_ARGUMENT);
  expect(await statusWith(bad, [["authorization", good]])).toBe(INVALID_ARGUMENT);
});

describe("a key", () => {
  it("is for its models: in a stream each request is judged", async () => {
    const key = await fleet.make({ scopes: usualScopes, models: ["accumulate"] });
    const { status } = await client().call("ModelInfer", echo("echo-int32"), { headers: bearer(key) });
    expect(status).toBe(5);
    const stream = client().stream(bearer(key));
    stream.send(echo("echo-int32"));
    stream.send({ ...echo("accumulate"), parameters: parameters({ sequence_id: 1, sequence_start: true }) });
    const [refused, good] = await stream.finish();
    expect(refused?.["error_message"]).toBe("Request for unknown model: 'echo-int32' is not found");
    expect(good?.["error_message"]).toBe("");
  });

  it("that is revoked ends its streams within five seconds", async () => {
    const key = await fleet.make({ scopes: usualScopes });
    const stream = client().stream(bearer(key));
    stream.send(echo("echo-int32"));
    await stream.received(1);
    await fleet.keys.revoke(key.id);
    const { code, metadata } = await stream.ended;
    expect([code, metadata.getMap()["baton-code"]]).toEqual([UNAUTHENTICATED, "revoked_api_key"]);
  });
});
