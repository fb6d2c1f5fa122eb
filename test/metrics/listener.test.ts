/** The listener of metrics in this process: its paths, its rules for hosts, and its limits. */
import { once } from "node:events";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Cells } from "#shared/metrics/cells.js";
import { startListener, type Listener } from "#shared/http/metrics-listener.js";
import { MetricsPage } from "#shared/metrics/page.js";
import { until } from "../support/until.js";
import { Page } from "./scrape.js";

let listener: Listener;
let mayRead = true;
const cells = new Cells();
beforeAll(async () => {
  cells.add(cells.counter("nv_inference_count", { model: 'a"\\\n', version: "1" }), 3);
  const page = await MetricsPage.open(cells);
  listener = await startListener({
    port: 0,
    host: "127.0.0.1",
    certificates: undefined,
    hosts: ["known.example"],
    mayRead: () => mayRead,
    page: () => page.text(),
    onFailure: (error) => expect.fail(String(error)),
  });
});
afterAll(() => listener.close());

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

function ask(path: string, headers: Record<string, string> = {}, method = "GET", body = ""): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { port } = listener;
    const sent = request({ host: "127.0.0.1", port, path, method, headers, agent: false }, (answer) => {
      const pieces: Buffer[] = [];
      answer.on("data", (piece: Buffer) => pieces.push(piece));
      answer.on("end", () =>
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(pieces) }),
      );
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

describe("the listener of metrics", () => {
  it("answers in Prometheus' format, compressed for a reader that takes that", async () => {
    const plain = await ask("/metrics");
    expect(plain.headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8");
    const page = new Page(plain.body.toString());
    expect(page.value('nv_inference_count{model="a\\"\\\\\\n",version="1"}')).toBe(3);
    expect(page.types.get("nodejs_version_info")).toBe("gauge");
    const zipped = await ask("/metrics?all=1", { "accept-encoding": "gzip;q=1.0, identity" });
    expect(zipped.headers["content-encoding"]).toBe("gzip");
    expect(gunzipSync(zipped.body).toString()).toContain("# TYPE nv_inference_count counter");
    const refused = await ask("/metrics", { "accept-encoding": "gzip;q=0" });
    expect(refused.headers["content-encoding"]).toBeUndefined();
  });

  it("has a link at its root, heads, and nothing else", async () => {
    expect((await ask("/")).body.toString()).toBe('<a href="metrics">metrics</a>\n');
    const head = await ask("/metrics", {}, "HEAD");
    expect([head.status, head.body.length]).toEqual([200, 0]);
    expect((await ask("/v2/models")).status).toBe(404);
    const posted = await ask("/metrics", {}, "POST", "x".repeat(100_000));
    expect([posted.status, posted.headers["allow"]]).toEqual([405, "GET, HEAD"]);
  });

  it("takes no reader under a name that a site can have, or for a page of another site", async () => {
    const status = async (headers: Record<string, string>) => (await ask("/metrics", headers)).status;
    expect(await status({ host: "evil.example" })).toBe(403);
    expect(await status({ host: "known.example:8002" })).toBe(200);
    expect(await status({ origin: "https://evil.example" })).toBe(403);
    expect(await status({ host: "a b" })).toBe(400);
  });

  it("asks for a token if it has to", async () => {
    mayRead = false;
    const { status, headers } = await ask("/metrics");
    mayRead = true;
    expect([status, headers["www-authenticate"]]).toEqual([401, "Bearer"]);
  });

  it("answers beside 200 connections that never read", async () => {
    const sockets: Socket[] = [];
    for (let i = 0; i < 200; i++) {
      const socket = connect(listener.port, "127.0.0.1");
      socket.on("error", () => undefined);
      sockets.push(socket);
      await once(socket, "connect");
    }
    expect((await ask("/metrics")).status).toBe(200);
    await until(() => sockets.filter(({ destroyed }) => !destroyed).length <= 64);
    for (const socket of sockets) socket.destroy();
  });
});
