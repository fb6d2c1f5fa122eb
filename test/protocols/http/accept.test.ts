import { spawnSync } from "node:child_process";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { moreHandles } from "../../../gateway/http/accept.js";
import { TestGateway } from "../../support/gateway/test-gateway.js";

const HANDLES = 3;
const CLIENTS = 24;
/**
 * A program that opens connections while this process blocks, so that all of them wait to be
 * accepted.
 */
const crowd = (port: number) => `
  let left = ${CLIENTS};
  for (let i = 0; i < ${CLIENTS}; i++) require("node:net").connect(${port}, "127.0.0.1", () => --left || process.exit());`;

describe("moreHandles", () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });
  const listening = async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    servers.push(server);
    return { server, port: (server.address() as AddressInfo).port };
  };

  it("lets as many connections in per turn of the event loop", async () => {
    const { server, port } = await listening();
    const accepted: Socket[] = [];
    const accept = (socket: Socket) => accepted.push(socket);
    server.on("connection", accept);
    await moreHandles(server, HANDLES, (handle) => servers.push(createServer(accept).listen(handle)));
    expect(servers).toHaveLength(1 + HANDLES);
    await new Promise(setImmediate);
    expect(spawnSync(process.execPath, ["-e", crowd(port)]).status).toBe(0);
    let most = 0;
    while (accepted.length < CLIENTS) {
      const before = accepted.length;
      await new Promise(setImmediate);
      most = Math.max(most, accepted.length - before);
    }
    expect(most).toBeGreaterThanOrEqual(HANDLES + 1);
  });

  it("gives none of a server that does not listen", async () => {
    const adopted: object[] = [];
    await moreHandles(createServer(), HANDLES, (handle) => adopted.push(handle));
    expect(adopted).toEqual([]);
  });
});

describe("a gateway that accepts several at a time", () => {
  it("answers on all of its handles, and on none once it is closed", async () => {
    const { server, url } = await TestGateway.start({ server: { accepting: HANDLES + 1 } });
    const answers = await Promise.all(Array.from({ length: CLIENTS }, () => fetch(`${url}/v2/health/live`)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    await Promise.all(answers.map((answer) => answer.text()));
    await server.close(0);
    const refused = new Promise((resolve) => connect(server.port, "127.0.0.1").on("error", resolve));
    expect(await refused).toMatchObject({ code: "ECONNREFUSED" });
  });
});
