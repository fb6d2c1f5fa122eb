/**
 * A fleet reaches Redis and NATS by TLS alone, with certificates on both sides, which the operator
 * replaces while the fleet runs.
 */
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { WebSocket } from "ws";
import { accepted, ask, ended, simpleBody } from "../jobs/ask.js";
import { makeCertificates, type TestCertificates } from "../support/certificates.js";
import { startFleet, type Fleet } from "../support/fleet/fleet.js";
import { until } from "../support/until.js";

const folder = mkdtempSync(join(tmpdir(), "baton-tls-"));
let certificates: TestCertificates;
let fleet: Fleet;
let url: string;

beforeAll(async () => {
  certificates = await makeCertificates(folder);
  fleet = await startFleet({
    models: ["simple", "accumulate", "gen-mha"],
    workers: 2,
    jobs: 1,
    direct: true,
    guarded: true,
    certificates,
  });
  await fleet.whenServing();
  [url = ""] = fleet.urls;
}, 120_000);
afterAll(async () => {
  await fleet.dispose();
  rmSync(folder, { recursive: true });
});

const step = async (value: number, more: object = {}) => {
  const body = {
    parameters: { sequence_id: 7, ...more },
    inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [value] }],
  };
  return ask(`${url}/v2/models/accumulate/infer`, { body });
};
const sumOf = ({ body }: Awaited<ReturnType<typeof step>>): number | undefined =>
  (body as unknown as { outputs?: { name: string; data: number[] }[] }).outputs?.find(({ name }) => name === "OUTPUT")
    ?.data[0];

it("runs steps and jobs", async () => {
  expect(sumOf(await step(3, { sequence_start: true }))).toBe(3);
  const job = await accepted(url, "simple", { infer: simpleBody(1) });
  expect((await ended(url, job.id)).state).toBe("completed");
});

it("streams over a WebSocket of a gateway that has a certificate itself", async () => {
  const { cert, key } = certificates.server;
  const own = { BATON_TLS_CERT_FILE: cert, BATON_TLS_KEY_FILE: key, BATON_HTTP_PORT: "0" };
  const gateway = fleet.launch("bundled/gateway/main.js", own);
  const { fields } = await gateway.waitForMessage("gateway listening");
  const body = { text_input: "a lap", max_tokens: 40, ignore_eos: true };
  const { body: begun } = await ask(`${url}/v2/models/gen-mha/generate`, {
    body,
    headers: { prefer: "respond-async" },
  });
  const address = `wss://127.0.0.1:${String(fields["port"])}/v2/requests/${begun.id}/ws`;
  const socket = new WebSocket(address, { ca: readFileSync(certificates.ca) });
  let messages = 0;
  socket.on("message", () => (messages += 1));
  const [code] = (await once(socket, "close")) as [number];
  expect(code).toBe(1_000);
  expect(messages).toBeGreaterThan(1);
  await gateway.kill();
});

it("goes on with new certificates of another authority after both brokers have restarted", async () => {
  await makeCertificates(folder);
  await Promise.all([fleet.redis.kill(), fleet.nats.kill()]);
  await Promise.all([fleet.redis.restart(), fleet.nats.restart()]);
  const members = [...fleet.gateways.map(({ member }) => member), ...fleet.workers];
  await until(() => members.every((member) => member.logged("nats connection restored") > 0));
  await fleet.whenServing();
  expect(sumOf(await step(4, { sequence_end: true }))).toBe(7);
});

it.each([
  ["redis", "BATON_REDIS_CA_FILE", /certificate.*redis connection lost/],
  ["nats", "BATON_NATS_CA_FILE", /certificate.*nats cannot be reached yet/],
])("does not talk to a %s whose certificate another authority has signed", async (_, setting, line) => {
  const other = await makeCertificates(join(folder, setting));
  const gateway = fleet.launch("bundled/gateway/main.js", { [setting]: other.ca, BATON_HTTP_PORT: "0" });
  await gateway.waitForLine(String(line), ({ text }) => line.test(text));
  expect(gateway.alive).toBe(true);
  await gateway.kill();
});
