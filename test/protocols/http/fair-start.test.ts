/**
 * Which requests begin first when more come than the gateway can begin at once. All bytes are in
 * the sockets before the gateway, which is in this process, reads any.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { inferPath, int32Input } from "../../fixtures/requests.js";
import { openGuard } from "../../../gateway/http/guard.js";
import { useGateway } from "../../support/gateway/test-gateway.js";
import { until } from "../../support/until.js";

const guard = openGuard("x-tenant");
const gateway = useGateway({ guard, server: { shareOf: guard.shareOf } });
const CONNECTIONS = 400;
const sockets: Socket[] = [];

afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

const body = JSON.stringify({ inputs: [int32Input()] });
/** With `TE` node's server parses the request. */
const request = (tenant: string, more = ""): string =>
  `POST ${inferPath("echo-INT32")} HTTP/1.1\r\nHost: h\r\nX-Tenant: ${tenant}\r\n${more}` +
  `Content-Length: ${body.length}\r\n\r\n${body}`;

/** A connection that the gateway has accepted, which it does with one in a turn. */
async function opened(): Promise<Socket> {
  const socket = connect({ port: gateway.port, host: "127.0.0.1" });
  sockets.push(socket);
  socket.write(request("first"));
  await once(socket, "data");
  return socket.resume();
}

it.each([
  ["parsed on the socket", ""],
  ["parsed by node", "TE: trailers\r\n"],
])("another tenant's request begins before most of a flood: %s", async (_, more) => {
  const flood = await Promise.all(Array.from({ length: CONNECTIONS }, opened));
  const other = await opened();
  gateway.reset();
  for (const socket of flood) socket.write(request("flood", more));
  other.write(request("other", more));
  await until(() => gateway.admitted.length > CONNECTIONS);
  const place = gateway.admitted.findIndex(({ tenant }) => tenant === "other");
  expect(place).toBeGreaterThanOrEqual(0);
  expect(place).toBeLessThan(50);
});
