/**
 * `/v2/requests/<id>/events`: server-sent events, at a gateway in this process with real brokers
 * behind it.
 */
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { asEvents, recordAt, wholeStream } from "../fixtures/token-records.js";
import { exchange } from "../support/gateway/http.js";
import { heldBytes } from "../support/brokers/resources.js";
import { listen, useRequestLab, type Listening } from "../support/streams/request-lab.js";
import { until } from "../support/until.js";

const lab = useRequestLab();

const events = (path: string, headers: Record<string, string> = {}, url = lab().gateway.url): Promise<Listening> =>
  listen(url + path, headers);

describe("events", () => {
  it("are the records, with their indexes as ids, from where the client left off", async () => {
    const { writer, path } = await lab().begin();
    const whole = wholeStream(30);
    const all = await events(`${path}/events`);
    expect(all.head.statusCode).toBe(200);
    expect(all.head.headers).toMatchObject({
      "content-type": "text/event-stream",
      "baton-request-id": path.slice("/v2/requests/".length),
      "x-request-id": expect.stringMatching(/./) as string,
    });
    await writer.write(...whole.slice(0, 20));
    await until(() => all.text().length === asEvents(whole.slice(0, 20)).length);
    const rest = await events(`${path}/events?after=4`);
    const headerFirst = await events(`${path}/events?after=4`, { "last-event-id": "9" });
    await writer.write(...whole.slice(20));
    expect(await all.ended).toBe(asEvents(whole));
    expect(await rest.ended).toBe(asEvents(whole.slice(5), 5));
    expect(await headerFirst.ended).toBe(asEvents(whole.slice(10), 10));
    expect(await (await events(`${path}/events`, { "last-event-id": "29" })).ended).toBe("");
  });

  it.each(["-1", "", " ", "1.5", "1e3", "0x1", "abc", "NaN", "9999999999", "1, 2", `${2n ** 64n}`])(
    "after '%s' are refused",
    async (after) => {
      const { path } = await lab().begin();
      const inAddress = await exchange(
        `${lab().gateway.url}${path}/events?after=${encodeURIComponent(after)}`,
        "",
        {},
        "GET",
      );
      const inHeader = await exchange(`${lab().gateway.url}${path}/events`, "", { "last-event-id": after }, "GET");
      for (const { status, json } of [inAddress, inHeader]) {
        expect([status, (JSON.parse(json) as { code: string }).code]).toEqual([400, "invalid_argument"]);
      }
    },
  );

  it("beyond the end, of an unknown request, or past their window are refused with a status", async () => {
    const { writer, path } = await lab().begin();
    await writer.write(recordAt(0));
    const codeAt = async (target: string) => {
      const { status, json } = await exchange(`${lab().gateway.url}${target}`, "", {}, "GET");
      return [status, (JSON.parse(json) as { code: string }).code];
    };
    expect(await codeAt(`${path}/events?after=1`)).toEqual([409, "ahead_of_log"]);
    expect(await codeAt("/v2/requests/x.0.1.talker/events")).toEqual([404, "unknown_request"]);
    expect(await codeAt("/v2/requests/x.0.1.talker/events?after=3")).toEqual([410, "resume_window_passed"]);
    for (const id of ["x", "x.0.1", "a.b.c.d", "x.0.1.{talker}", `${"x".repeat(65)}.0.1.talker`]) {
      expect(await codeAt(`/v2/requests/${id}/events`)).toEqual([404, "unknown_request"]);
      expect(await codeAt(`/v2/requests/${id}`)).toEqual([404, "unknown_request"]);
    }
  });

  it("answer HEAD, and other methods with 405", async () => {
    const { path } = await lab().begin();
    const head = await exchange(`${lab().gateway.url}${path}/events`, "", {}, "HEAD");
    expect([head.status, head.headers["content-type"], head.json]).toEqual([200, "text/event-stream", ""]);
    for (const [method, target] of [
      ["POST", path],
      ["PUT", `${path}/events`],
      ["GET", `${path}/detach`],
      ["POST", `${path}/ws`],
    ] as const) {
      expect((await exchange(`${lab().gateway.url}${target}`, "", {}, method)).status).toBe(405);
    }
  });

  it("end with an error event when the stream fails after its head", async () => {
    const { writer, path } = await lab().begin();
    const reading = await events(`${path}/events`);
    await writer.write(recordAt(0));
    await until(() => reading.text() !== "");
    await writer.destroy("log", "outcome");
    expect(await reading.ended).toBe(
      `${asEvents([recordAt(0)])}event: error\ndata: {"error":"records of the stream are gone","code":"state_lost"}\n\n`,
    );
  });

  it("stop being read when the client leaves", async () => {
    const { writer, path } = await lab().begin();
    const reading = await events(`${path}/events`);
    await writer.write(recordAt(0));
    await until(() => reading.text() !== "");
    const live = lab().relayed.relay.liveStream(writer.address);
    expect(live?.hasReaders).toBe(true);
    reading.leave();
    await until(() => live?.hasReaders === false);
  });

  it.each(["events", "stream?offset=-1&live=sse"])(
    "by %s of 200 clients that read nothing cost bounded memory",
    { timeout: 120_000 },
    async (reading) => {
      const { writer, path } = await lab().begin();
      const text = "x".repeat(16_000);
      const sockets = await Promise.all(
        Array.from(
          { length: 200 },
          () =>
            new Promise<ReturnType<typeof connect>>((resolve) => {
              const socket = connect(lab().gateway.port, "127.0.0.1", () => {
                socket.write(`GET ${path}/${reading} HTTP/1.1\r\nHost: h\r\n\r\n`, () => resolve(socket));
              });
            }),
        ),
      );
      await writer.write(recordAt(0));
      const before = heldBytes();
      for (let i = 1; i < 320; i++) await writer.write(recordAt(i, { choices: [{ index: 0, text, tokens: [1] }] }));
      const well = await events(`${path}/events?after=0`);
      await until(() => well.text().length > 5_000_000, 60_000);
      // The kernel takes up to 4 MB for each client; the rest would be 240 MB. Buffers released
      // just now may still be counted.
      await until(() => heldBytes() - before < 64 << 20);
      well.leave();
      for (const socket of sockets) socket.destroy();
      await until(() => lab().relayed.relay.liveStream(writer.address)?.hasReaders !== true);
    },
  );
});
