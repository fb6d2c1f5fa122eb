/** Certificates for tests: an authority, and what it has signed for a server and for a client. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { generate } from "selfsigned";

/** The paths of files in PEM. */
export interface Pair {
  readonly cert: string;
  readonly key: string;
}

export interface TestCertificates {
  readonly ca: string;
  /** For 127.0.0.1 and localhost, unless it was made for others. */
  readonly server: Pair;
  readonly client: Pair;
}

const usualNames = { dns: "localhost", ip: "127.0.0.1" };

/**
 * Makes an authority of its own; a second call for the same folder replaces all files.
 * @param names that the certificates are for
 */
export async function makeCertificates(
  folder: string,
  names: { readonly dns?: string; readonly ip?: string } = usualNames,
): Promise<TestCertificates> {
  mkdirSync(folder, { recursive: true });
  const usual = { keyType: "ec", algorithm: "sha256" } as const;
  const authority = await generate([{ name: "commonName", value: "an authority" }], {
    ...usual,
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, critical: true },
    ],
  });
  const ca = { cert: authority.cert, key: authority.private };
  const write = (name: string, text: string): string => {
    const file = join(folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  };
  const pair = async (name: string): Promise<Pair> => {
    const made = await generate([{ name: "commonName", value: name }], {
      ...usual,
      ca,
      extensions: [
        { name: "extKeyUsage", serverAuth: true, clientAuth: true },
        {
          name: "subjectAltName",
          altNames: [
            ...(names.dns === undefined ? [] : [{ type: 2, value: names.dns } as const]),
            ...(names.ip === undefined ? [] : [{ type: 7, ip: names.ip } as const]),
          ],
        },
      ],
    });
    return { cert: write(`${name}.pem`, made.cert), key: write(`${name}.key`, made.private) };
  };
  return { ca: write("ca.pem", ca.cert), server: await pair("server"), client: await pair("client") };
}

/** The settings of a process with these files, such as `BATON_REDIS_CA_FILE`. */
export function clientSettings(broker: "REDIS" | "NATS", { ca, client }: TestCertificates) {
  return {
    [`BATON_${broker}_CA_FILE`]: ca,
    [`BATON_${broker}_CERT_FILE`]: client.cert,
    [`BATON_${broker}_KEY_FILE`]: client.key,
  };
}
