/** The gateway's listener with TLS: its handshakes, its limits, and certificates that change. */
import { once } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { connect as connectPlain } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openCertificates, type Certificates } from "#shared/http/certificates.js";
import { inferPath, int32Input, rawPost, statusesIn } from "../fixtures/requests.js";
import { makeCertificates, type TestCertificates } from "../support/certificates.js";
import { TestGateway } from "../support/gateway/test-gateway.js";
import { until } from "../support/until.js";

const folder = mkdtempSync(join(tmpdir(), "baton-tls-"));
const body = JSON.stringify({ inputs: [int32Input(7)] });
const path = inferPath("echo-INT32");

let files: TestCertificates;
beforeAll(async () => {
  files = await makeCertificates(folder);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** A gateway of this process, and what it says about its certificates. */
async function gatewayWith(more: Readonly<Record<string, string>> = {}, limits = {}) {
  const said: string[] = [];
  const settings = { BATON_TLS_CERT_FILE: files.server.cert, BATON_TLS_KEY_FILE: files.server.key, ...more };
  const certificates: Certificates | undefined = openCertificates(settings, (_, line) => said.push(line));
  const gateway = await TestGateway.start({ server: { certificates, limits, accepting: 4 } });
  const close = async (): Promise<void> => {
    await gateway.server.close(0);
    certificates?.close();
  };
  return { gateway, port: gateway.port, said, close };
}

const trusting = (): ConnectionOptions => ({ ca: readFileSync(files.ca) });

/** @returns the status and the text of an answer */
function ask(port: number, options: ConnectionOptions = trusting()): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, method: "POST", agent: false, ...options }, (answer) => {
      const pieces: Buffer[] = [];
      answer.on("data", (piece: Buffer) => pieces.push(piece));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(pieces).toString() }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

/** Opens a connection past its handshake. */
function opened(port: number): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ host: "127.0.0.1", port, ...trusting() }, () => resolve(socket));
    socket.on("error", reject);
  });
}

function closed(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connectPlain(port, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (piece) => (text += piece.toString("latin1")));
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(text));
  });
}

describe("a gateway with a certificate", () => {
  let served: Awaited<ReturnType<typeof gatewayWith>>;
  beforeAll(async () => {
    served = await gatewayWith();
  });
  afterAll(() => served.close());

  it("answers on the socket's way and on node's", async () => {
    const socket = await opened(served.port);
    socket.write(rawPost(path, body));
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(statusesIn(answer.toString("latin1"))).toEqual([200]);
    expect(served.gateway.plainly).toBe(1);
    socket.destroy();
    for (let i = 0; i < 12; i += 1) expect(await ask(served.port)).toMatchObject({ status: 200 });
    const chunked = await new Promise<number>((resolve, reject) => {
      const headers = { "transfer-encoding": "chunked" };
      const sent = request({ host: "127.0.0.1", port: served.port, path, method: "POST", headers, ...trusting() });
      sent.on("response", ({ statusCode = 0 }) => resolve(statusCode)).on("error", reject);
      sent.end(body);
    });
    expect(chunked).toBe(200);
  });

  it("answers several requests of a connection, in pieces and in one", async () => {
    const socket = await opened(served.port);
    let text = "";
    socket.on("data", (piece: Buffer) => (text += piece.toString("latin1")));
    const post = rawPost(path, body);
    socket.write(post.slice(0, 20));
    socket.write(post.slice(20) + post);
    await until(() => statusesIn(text).length === 2);
    expect(statusesIn(text)).toEqual([200, 200]);
    socket.destroy();
  });

  it("says nothing to a client without TLS, or with a version that is too old", async () => {
    expect(await closed(served.port, rawPost(path, body))).not.toContain("HTTP/1.1");
    const old = { ...trusting(), maxVersion: "TLSv1.1", minVersion: "TLSv1", ciphers: "DEFAULT@SECLEVEL=0" } as const;
    await expect(ask(served.port, old)).rejects.toThrow(/alert protocol version|unsupported protocol/);
    expect(await ask(served.port, { ...trusting(), maxVersion: "TLSv1.2" })).toMatchObject({ status: 200 });
  });

  it("is not believed by a client that trusts another authority", async () => {
    await expect(ask(served.port, {})).rejects.toThrow(/certificate/);
  });
});

it("counts connections from before their handshake, and not after their end", async () => {
  const served = await gatewayWith({}, { connections: 3 });
  const silent = Array.from({ length: 3 }, () => connectPlain(served.port, "127.0.0.1"));
  await Promise.all(silent.map((socket) => new Promise((resolve) => socket.once("connect", resolve))));
  await expect(ask(served.port)).rejects.toThrow();
  for (const socket of silent) socket.destroy();
  const answered = async () => (await ask(served.port).catch(() => ({ status: 0 }))).status === 200;
  for (let i = 0; i < 9; i += 1) await until(answered);
  await served.close();
});

it("asks for a client's certificate if it has an authority for them", async () => {
  const served = await gatewayWith({ BATON_TLS_CLIENT_CA_FILE: files.ca });
  const other = await makeCertificates(join(folder, "other"));
  const withPair = ({ cert, key }: TestCertificates["client"]) => ({
    ...trusting(),
    cert: readFileSync(cert),
    key: readFileSync(key),
  });
  expect(await ask(served.port, withPair(files.client))).toMatchObject({ status: 200 });
  await expect(ask(served.port)).rejects.toThrow();
  await expect(ask(served.port, withPair(other.client))).rejects.toThrow();
  expect(served.gateway.admitted).toHaveLength(1);
  await served.close();
});

it("takes a renewed certificate for new connections, and keeps the former one beside a foreign key", async () => {
  const served = await gatewayWith();
  const socket = await opened(served.port);
  const before = readFileSync(files.server.key);
  const former = trusting();
  files = await makeCertificates(folder);
  await until(() => served.said.includes("the certificate was renewed"));
  expect(await ask(served.port)).toMatchObject({ status: 200 });
  await expect(ask(served.port, former)).rejects.toThrow(/certificate/);
  expect(socket.destroyed).toBe(false);
  socket.destroy();
  const stayed = () => served.said.filter((line) => line.startsWith("the former certificate stays")).length;
  writeFileSync(files.server.key, before);
  await until(() => stayed() === 1);
  expect(await ask(served.port)).toMatchObject({ status: 200 });
  writeFileSync(files.server.key, "");
  chmodSync(files.server.key, 0o620);
  await until(() => stayed() === 2);
  expect(await ask(served.port)).toMatchObject({ status: 200 });
  served.said.length = 0;
  files = await makeCertificates(folder);
  chmodSync(files.server.key, 0o600);
  await until(() => served.said.includes("the certificate was renewed"));
  expect(await ask(served.port)).toMatchObject({ status: 200 });
  await served.close();
});

it.each([
  ["a key without a certificate", { BATON_TLS_KEY_FILE: "key" }, "BATON_TLS_KEY_FILE needs BATON_TLS_CERT_FILE"],
  ["a certificate without a key", { BATON_TLS_CERT_FILE: "cert" }, "BATON_TLS_CERT_FILE needs BATON_TLS_KEY_FILE"],
  ["clients' authorities alone", { BATON_TLS_CLIENT_CA_FILE: "ca" }, "BATON_TLS_CLIENT_CA_FILE needs BATON_TLS_CERT"],
])("does not start with %s", (_, settings, message) => {
  expect(() => openCertificates(settings, () => undefined)).toThrow(message);
});

it("does not start with a file that is missing, is no certificate, or is for another key", async () => {
  const other = await makeCertificates(join(folder, "another"));
  const open = (cert: string, key: string) => () =>
    openCertificates({ BATON_TLS_CERT_FILE: cert, BATON_TLS_KEY_FILE: key }, () => undefined);
  expect(open(join(folder, "none"), files.server.key)).toThrow("BATON_TLS_CERT_FILE cannot be read: ENOENT");
  expect(open(files.server.key, files.server.key)).toThrow("BATON_TLS_CERT_FILE names a file without a certificate");
  const foreign = "BATON_TLS_KEY_FILE does not name the key of BATON_TLS_CERT_FILE";
  expect(open(files.server.cert, other.server.key)).toThrow(foreign);
  writeFileSync(other.server.key, "", { mode: 0o600 });
  expect(open(files.server.cert, other.server.key)).toThrow(foreign);
});
