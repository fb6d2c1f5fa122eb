/**
 * A local S3: a server that speaks the protocol of S3, behind a server that checks the signature of
 * every request as Amazon does, with another implementation than the client's. The inner server's
 * check is off, because it does not know the paths of buckets as Amazon's client signs them.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request, type IncomingMessage } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { sign } from "aws4";

interface Server {
  run(): Promise<{ readonly port: number }>;
  close(): Promise<void>;
}
type ServerClass = new (options: {
  port: number;
  silent: boolean;
  directory: string;
  allowMismatchedSignatures: boolean;
}) => Server;
const S3rver = createRequire(import.meta.url)("@20minutes/s3rver") as ServerClass;

export interface S3Server {
  readonly url: string;
  readonly credentials: typeof credentials;
  close(): Promise<void>;
}

const credentials = { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" };
const REFUSAL = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>SignatureDoesNotMatch</Code></Error>`;

export async function startS3(): Promise<S3Server> {
  const directory = mkdtempSync(join(tmpdir(), "baton-s3-"));
  const server = new S3rver({ port: 0, silent: true, directory, allowMismatchedSignatures: true });
  const { port } = await server.run();
  const front = createServer((incoming, outgoing) => {
    void (async () => {
      const body = await buffer(incoming);
      if (!isSigned(incoming, body)) {
        outgoing.writeHead(403, { "content-type": "application/xml" }).end(REFUSAL);
        return;
      }
      const { url: path, method, headers } = incoming;
      request({ host: "127.0.0.1", port, path, method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(outgoing);
      }).end(body);
    })();
  }).listen(0, "127.0.0.1");
  await once(front, "listening");
  return {
    url: `http://127.0.0.1:${(front.address() as AddressInfo).port}`,
    credentials,
    async close() {
      front.closeAllConnections();
      front.close();
      await server.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Whether the request has a valid `AWS4-HMAC-SHA256` signature over its whole body. */
function isSigned({ method = "GET", url = "/", headers }: IncomingMessage, body: Buffer): boolean {
  const { authorization = "" } = headers;
  const [, region = "", names = ""] =
    /^AWS4-HMAC-SHA256 Credential=\w+\/\d{8}\/([\w-]+)\/s3\/aws4_request, SignedHeaders=([\w;-]+), /.exec(
      authorization,
    ) ?? [];
  const signed = names.split(";");
  // The signature must cover these headers, or an attacker could change the request.
  for (const name of ["host", "x-amz-content-sha256", "x-amz-date"]) if (!signed.includes(name)) return false;
  if (headers["x-amz-content-sha256"] !== createHash("sha256").update(body).digest("hex")) return false;
  const asked = {
    service: "s3",
    region,
    method,
    path: url,
    headers: Object.fromEntries(signed.map((name) => [name, headers[name]])),
    extraHeadersToInclude: { range: true },
  };
  return sign(asked, credentials).headers?.["Authorization"] === authorization;
}
