/**
 * Clients that send slowly: how long an upload may take beside other requests, and the room that a
 * tenant's slow uploads leave to other tenants. The gateway's HTTP edge runs in this process, so
 * that its limits can be short; Redis and NATS are real.
 */
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NatsObjectStore } from "#shared/nats/object-store.js";
import { connectRedis, whenReady, type RedisClient } from "#shared/redis/connect.js";
import { Files } from "../../gateway/files/files.js";
import { openGuard } from "../../gateway/http/guard.js";
import { FileService } from "../../gateway/service/files.js";
import { statusesIn } from "../fixtures/requests.js";
import { startNats, type NatsServer } from "../support/brokers/nats.js";
import { startRedis, type RedisServer } from "../support/brokers/redis.js";
import { TestGateway } from "../support/gateway/test-gateway.js";
import { silentLog } from "../support/silent.js";
import { readUntil } from "../support/until.js";
import { answerTo, beginUpload, FORM_END, FORM_TYPE, formOf, partHead, upload } from "./upload.js";

const REQUEST_MS = 500;
/** The shortest limit that Node allows, which is the time for a head. */
const UPLOAD_MS = 10_000;
const MANY = 1_000_000_000;
const of = (tenant: string) => ({ "x-tenant": tenant });
const small = formOf([
  { field: "purpose", text: "batch" },
  { field: "file", name: "a.jsonl", text: "{}\n" },
]);

let servers: readonly [RedisServer, NatsServer];
let redis: RedisClient;
let store: NatsObjectStore;
let gateway: TestGateway;
beforeAll(async () => {
  servers = await Promise.all([startRedis(), startNats()]);
  redis = connectRedis({ url: servers[0].url, name: "files", log: silentLog });
  await whenReady(redis, AbortSignal.timeout(60_000));
  store = new NatsObjectStore({ url: servers[1].url, name: "files", bucket: "files", replicas: 1 });
  const limits = { fileBytes: MANY, tenantBytes: MANY, allBytes: MANY, tenantFiles: MANY, allFiles: MANY };
  const files = new Files({ redis, store, limits, ttlMs: 60_000, log: silentLog });
  gateway = await TestGateway.start({
    files: new FileService(files, redis),
    guard: openGuard("x-tenant"),
    server: { limits: { requestMs: REQUEST_MS }, uploadMs: UPLOAD_MS },
  });
});
afterAll(async () => {
  await gateway.server.close(0);
  await store.close();
  redis.disconnect();
  await Promise.all(servers.map((server) => server.dispose()));
});

/** Sends a request's head and the start of its body. @returns the bytes received until the end */
function broken(path: string, head: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const lines = [`POST ${path} HTTP/1.1`, "Host: h", "X-Tenant: one", "Content-Length: 1000", ...head, "", ""];
    const socket = connect(gateway.port, "127.0.0.1", () =>
      socket.write(lines.join("\r\n") + partHead({ field: "x" })),
    );
    socket.on("data", (piece) => (text += piece.toString("latin1")));
    socket.on("close", () => resolve(text));
    socket.on("error", reject);
  });
}

describe("an upload", () => {
  it("may take longer than other requests, and not for ever", { timeout: 60_000 }, async () => {
    const endless = broken("/v1/files", [`Content-Type: ${FORM_TYPE}`]);
    const sent = beginUpload(gateway.url, of("one"));
    const answer = answerTo(sent);
    sent.write("{}");
    // By then any other request of the same age has been refused.
    expect(statusesIn(await broken("/v2/models/echo-INT32/infer", []))).toEqual([408]);
    sent.end(FORM_END);
    expect(await answer).toMatchObject({ status: 200, body: { bytes: 2 } });
    expect(statusesIn(await endless)).toEqual([408]);
  });

  it("finds room beside the slow ones of another tenant", { timeout: 60_000 }, async () => {
    const slow = Array.from({ length: 40 }, () => beginUpload(gateway.url, of("one")));
    const refused = slow.map(answerTo);
    for (const answer of refused) answer.catch(() => undefined);
    // A tenant has at most half of the slots, so a few of the many have an answer at once.
    const first = await Promise.race(refused);
    expect(first).toMatchObject({ status: 503, body: { error: { code: "unavailable" } } });
    expect((await upload(gateway.url, small, of("two"))).status).toBe(200);
    expect((await upload(gateway.url, small, of("one"))).status).toBe(503);
    for (const one of slow) one.destroy();
    const again = await readUntil(
      () => upload(gateway.url, small, of("one")),
      ({ status }) => status === 200,
    );
    expect(again.status).toBe(200);
  });
});
