/** Connections to NATS by TLS: the host of its certificate, and a server that goes at once. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { connectForBulk } from "#shared/nats/connect.js";
import { startGuardedNats } from "../support/brokers/nats.js";
import { makeCertificates, type TestCertificates } from "../support/certificates.js";

const folder = mkdtempSync(join(tmpdir(), "baton-tls-"));
afterAll(() => rmSync(folder, { recursive: true }));

const filesOf = ({ ca, client }: TestCertificates) => ({ ca, ...client });

it.each([
  ["an address", { ip: "127.0.0.1" }, "127.0.0.1", "localhost"],
  ["a name", { dns: "localhost" }, "localhost", "127.0.0.1"],
])("need a certificate for the host that they dial: %s", async (_, names, right, wrong) => {
  const own = join(folder, right);
  const certificates = await makeCertificates(own, names);
  const nats = await startGuardedNats(own, certificates);
  const { guard, port } = nats;
  const link = { name: "test", creds: guard.creds.gateway, tls: filesOf(certificates) };
  const connection = await connectForBulk({ ...link, url: `tls://${right}:${port}` });
  await connection.close();
  await expect(connectForBulk({ ...link, url: `tls://${wrong}:${port}` })).rejects.toThrow();
  await nats.dispose();
});

it("fail if the server resets them before the handshake", async () => {
  const info = { server_id: "x", version: "2.9.10", proto: 1, tls_required: true, max_payload: 1_048_576 };
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.write(`INFO ${JSON.stringify(info)}\r\n`, () => setImmediate(() => socket.resetAndDestroy()));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const tls = filesOf(await makeCertificates(join(folder, "reset")));
  for (let i = 0; i < 10; i++) {
    await expect(connectForBulk({ url: `tls://127.0.0.1:${port}`, name: "test", tls })).rejects.toThrow();
  }
  server.close();
});
