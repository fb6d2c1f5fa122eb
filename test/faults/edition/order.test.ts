/**
 * The steps of one sequence that a client sends one behind the other on one connection take effect
 * in that order, while the gateway's link to Redis is cut many times. The client does not wait for
 * answers.
 */
import { connect } from "node:net";
import { once } from "node:events";
import { expect, it } from "vitest";
import { until } from "../../support/until.js";
import { useFleet } from "../../support/fleet/use-fleet.js";
import { stepBody } from "../../edition/ask.js";
import { buckets } from "../../edition/settings.js";

const CUTS = 100;
/** The number of steps sent at a time, less than may wait in one sequence. */
const ROUND = 8;

const served = useFleet({ models: ["accumulate"], env: buckets(16) });

it("keeps the order of pipelined steps through 100 cuts of the link", { timeout: 180_000 }, async () => {
  const { port } = new URL(served.url);
  const socket = connect(Number(port), "127.0.0.1");
  await once(socket, "connect");
  let replies = "";
  socket.on("data", (data: Buffer) => (replies += data.toString("latin1")));
  const statuses = () => [...replies.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
  const sums = () => [...replies.matchAll(/"OUTPUT"[^\]]*\][^\]]*\[(-?\d+)\]/g)].map(([, sum]) => Number(sum));
  const send = (value: number, start: boolean) => {
    const body = JSON.stringify(stepBody({ sequence: 7, value, start }));
    const head = [
      "POST /v2/models/accumulate/infer HTTP/1.1",
      "Host: localhost",
      `Content-Length: ${Buffer.byteLength(body)}`,
    ];
    socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  };

  let sent = 0;
  let cut = 0;
  for (let round = 0; round < CUTS; round++) {
    for (let i = 0; i < ROUND; i++) {
      sent += 1;
      send(sent, sent === 1);
      // The steps of one turn of the event loop share a call, so the test sends them in several
      // turns.
      await new Promise((resolve) => setTimeout(resolve, 2));
      if (i === ROUND / 2) cut += served.fleet.lines.gatewayRedis.resetAll();
    }
    const expected = sent;
    await until(() => statuses().length === expected || socket.destroyed);
  }
  socket.destroy();
  expect(cut).toBeGreaterThanOrEqual(CUTS);
  expect(statuses()).toEqual(Array(sent).fill(200));
  // A step that another overtook has another sum, since all values differ.
  expect(sums()).toEqual(Array.from({ length: sent }, (_, i) => ((i + 1) * (i + 2)) / 2));
});
