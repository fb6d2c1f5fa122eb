/** Calls of gRPC in the access log, among the metrics and in traces; and over TLS. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { credentials } from "@grpc/grpc-js";
import { afterAll, describe, expect, it } from "vitest";
import { linesWith, logFolder } from "../../access-log/lines.js";
import { metricsOf, scrape } from "../../metrics/scrape.js";
import { freePort } from "../../support/brokers/port.js";
import { makeCertificates } from "../../support/certificates.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { readUntil } from "../../support/until.js";
import { TraceReceiver } from "../../support/traces/receiver.js";
import { clientsTrace, named, pathsOf } from "../../support/traces/spans.js";
import { GrpcClient, HEALTH, int32s, parameters, type Message } from "./client.js";

const receiver = await TraceReceiver.start();
afterAll(() => receiver.leave());
const log = join(logFolder(), "access.log");
const running = useFleet({
  models: ["echo-int32", "accumulate"],
  direct: true,
  grpc: true,
  env: { BATON_ACCESS_LOG: log, BATON_METRICS_PORT: "0", BATON_TRACE_URL: receiver.url, BATON_TRACE_SAMPLE: "0" },
});
const opened: GrpcClient[] = [];
const client = (): GrpcClient => (opened[0] ??= new GrpcClient(running.fleet.gateways[0]?.grpc ?? ""));
afterAll(() => opened.forEach((one) => one.close()));

const INFER = "/inference.GRPCInferenceService/ModelInfer";
const STREAM = "/inference.GRPCInferenceService/ModelStreamInfer";
const request = (model: string, given: Parameters<typeof parameters>[0] = {}): Message => ({
  model_name: model,
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1] }],
  raw_input_contents: [int32s(1)],
  parameters: parameters(given),
});

describe("the access log", () => {
  it("has a line for a call, with the facts of HTTP", async () => {
    const { trailers } = await client().call("ModelInfer", request("echo-int32"), {
      headers: { "x-request-id": "mine" },
    });
    expect(trailers).toMatchObject({ "x-request-id": "mine" });
    const [line] = await linesWith(log, ({ id }) => id === "mine");
    expect(line).toMatchObject({
      tenant: "default",
      client: "127.0.0.1",
      protocol: "grpc",
      method: "POST",
      route: INFER,
      path: INFER,
      model: "echo-int32",
      version: "1",
      status: 200,
      code: null,
      ended: "sent",
      worker: expect.stringMatching(/^worker-1\./) as string,
      request: trailers["baton-request-id"],
    });
    expect(line?.bytes_in).toBeGreaterThan(20);
    expect(line?.bytes_out).toBeGreaterThan(20);
  });

  it("has a line for each request of a stream, and one for the stream", async () => {
    const stream = client().stream({ "x-request-id": "streamed" });
    stream.send(request("accumulate", { sequence_id: 5, sequence_start: true }));
    stream.send(request("none"));
    await stream.finish();
    const lines = await linesWith(log, ({ id }) => id === "streamed", 3);
    const told = lines.map(({ model, step, code, status }) => ({ model, step, code, status }));
    // Either request may end first.
    expect(told.slice(0, 2)).toContainEqual({ model: null, step: null, code: "unknown_model", status: 404 });
    expect(told.slice(0, 2)).toContainEqual({ model: "accumulate", step: 1, code: null, status: 200 });
    expect(told[2]).toEqual({ model: null, step: null, code: null, status: 200 });
    expect(new Set(lines.map(({ route }) => route))).toEqual(new Set([STREAM]));
  });
});

describe("the metrics", () => {
  it("count calls by their method, and refusals by code", async () => {
    const page = async () => {
      const [gateway] = running.fleet.gateways;
      return scrape(await metricsOf((gateway ?? expect.fail("there is a gateway")).member));
    };
    const calls = `baton_http_requests_total{route="${INFER}",method="POST",status="2xx"}`;
    const refusals = 'baton_refusals_total{code="invalid_argument",model="echo-int32"}';
    const before = await page();
    await client().call("ModelInfer", request("echo-int32"));
    await client().call("ModelInfer", { ...request("echo-int32"), raw_input_contents: [] });
    const after = await page();
    expect(after.value(calls) - before.value(calls)).toBe(1);
    expect(after.value(refusals) - (before.samples.get(refusals) ?? 0)).toBe(1);
    expect(after.value("baton_grpc_connections")).toBe(1);
    expect(after.value('baton_http_request_duration_seconds_count{protocol="grpc"}')).toBeGreaterThan(1);
  });
});

describe("the fleet", () => {
  it("shows the connections of each gateway, of HTTP and of gRPC", async () => {
    await client().call("ServerLive", {});
    const read = async () => {
      const fleet = (await (await fetch(`${running.url}/v2/fleet`)).json()) as {
        gateways: { connections?: { http: number; grpc?: number } }[];
      };
      return fleet.gateways[0]?.connections;
    };
    // A gateway notes them every five seconds.
    const seen = await readUntil(read, (now) => now?.grpc === 1 && now.http > 0, { patienceMs: 15_000 });
    expect(seen).toEqual({ http: expect.any(Number), grpc: 1 });
  });
});

describe("a trace", () => {
  it("begins with the method, and goes on as over HTTP", async () => {
    const { traceId, headers } = clientsTrace();
    expect((await client().call("ModelInfer", request("echo-int32"), { headers })).status).toBe(0);
    const spans = await receiver.whole(traceId, [`POST ${INFER}`, "admit", "queue", "process", "run", "commit"]);
    expect(pathsOf(spans)).toContain(`POST ${INFER} > admit > process > run`);
    expect(named(spans, `POST ${INFER}`).attributes).toMatchObject({
      "baton.protocol": "grpc",
      "baton.model": "echo-int32",
    });
  });
});

describe("TLS", () => {
  it("guards gRPC with the certificate of HTTP", async () => {
    const folder = mkdtempSync(join(tmpdir(), "baton-grpc-tls-"));
    try {
      const files = await makeCertificates(folder);
      const [httpPort, grpcPort] = [await freePort(), await freePort()];
      const gateway = running.fleet.launch("gateway/main.js", {
        BATON_HTTP_PORT: String(httpPort),
        BATON_GRPC_PORT: String(grpcPort),
        BATON_TLS_CERT_FILE: files.server.cert,
        BATON_TLS_KEY_FILE: files.server.key,
        BATON_TLS_CLIENT_CA_FILE: files.ca,
      });
      await gateway.waitForMessage("gateway listening");
      const [ca, key, cert] = [files.ca, files.client.key, files.client.cert].map((file) => readFileSync(file));
      const known = new GrpcClient(`localhost:${grpcPort}`, {}, credentials.createSsl(ca, key, cert));
      expect((await known.call("Check", {}, { service: HEALTH, deadlineMs: 20_000 })).status).toBe(0);
      const stranger = new GrpcClient(`localhost:${grpcPort}`, {}, credentials.createSsl(ca));
      const plain = new GrpcClient(`localhost:${grpcPort}`);
      for (const one of [stranger, plain]) {
        expect((await one.call("Check", {}, { service: HEALTH, deadlineMs: 5_000 })).status).toBe(14);
      }
      for (const one of [known, stranger, plain]) one.close();
      await gateway.kill();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
