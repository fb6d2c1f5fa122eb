/**
 * Certificates and keys in files. Operators replace such files while processes run, and for an
 * instant a certificate may then stand beside the key of another. So whoever opens connections
 * keeps the last files that fit together.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { statSync } from "node:fs";
import { createSecureContext, type SecureContext, type SecureContextOptions } from "node:tls";
import { UnusableError } from "./exit.js";
import { readPublicFile, readSecretFile } from "./secret-file.js";

/** The paths of files in PEM. */
export interface TlsFiles {
  /** The authorities that sign the other side's certificate. Absent: the system's. */
  readonly ca?: string | undefined;
  /** This side's certificate, and those between it and an authority. */
  readonly cert?: string | undefined;
  /** The certificate's key. */
  readonly key?: string | undefined;
}

/** The settings that name the files. */
export type TlsSettings = Readonly<Record<keyof TlsFiles, string>>;

export const redisTls: TlsSettings = {
  ca: "BATON_REDIS_CA_FILE",
  cert: "BATON_REDIS_CERT_FILE",
  key: "BATON_REDIS_KEY_FILE",
};

export const natsTls: TlsSettings = {
  ca: "BATON_NATS_CA_FILE",
  cert: "BATON_NATS_CERT_FILE",
  key: "BATON_NATS_KEY_FILE",
};

/** @returns the files that the environment names */
export function tlsFilesOf(settings: TlsSettings, env: Readonly<Record<string, unknown>>): TlsFiles {
  const path = (name: string) => {
    const value = env[name];
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  return { ca: path(settings.ca), cert: path(settings.cert), key: path(settings.key) };
}

/** @returns the settings among these that name a file */
export function settingsOfFiles(settings: TlsSettings, files: TlsFiles): string[] {
  return (["ca", "cert", "key"] as const).filter((name) => files[name] !== undefined).map((name) => settings[name]);
}

export function namesFiles(files: TlsFiles): boolean {
  return Object.values(files).some((path) => path !== undefined);
}

/**
 * Reads the files, and checks that they fit together.
 * @throws UnusableError that names the setting at fault
 */
export function readTls(files: TlsFiles, settings: TlsSettings): SecureContextOptions {
  if (files.cert !== undefined && files.key === undefined) throw new UnusableError(needs(settings.cert, settings.key));
  if (files.key !== undefined && files.cert === undefined) throw new UnusableError(needs(settings.key, settings.cert));
  const ca = files.ca === undefined ? undefined : readCertificates(settings.ca, files.ca);
  const cert = files.cert === undefined ? undefined : readCertificates(settings.cert, files.cert);
  const key = files.key === undefined ? undefined : readSecretFile(settings.key, files.key);
  // A secure context takes an empty key for none.
  if (cert !== undefined && key !== undefined && !isKeyOf(cert, key))
    throw new UnusableError(`${settings.key} does not name the key of ${settings.cert}.`);
  return { ...(ca !== undefined && { ca }), ...(cert !== undefined && { cert }), ...(key !== undefined && { key }) };
}

/** A text that differs after each change of the files. */
export function stampOf({ ca, cert, key }: TlsFiles): string {
  const stamps = [ca, cert, key].map((path) => {
    try {
      const { ino, size, mtimeMs, ctimeMs } = statSync(path ?? "");
      return `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
    } catch {
      return ""; // not there, or not readable now
    }
  });
  return stamps.join("\n");
}

/** The options of a client's connections, with a name that the type of the NATS client knows. */
export interface ClientTls {
  readonly secureContext?: SecureContext;
  readonly ca?: never;
}

/**
 * The options for connections of a client. The files are read at the first connect after a change.
 * @param files as `readTls` has found them good
 * @throws UnusableError if they have become unusable meanwhile
 */
export function clientTls(files: TlsFiles, settings: TlsSettings): ClientTls {
  if (!namesFiles(files)) return {};
  let stamp = stampOf(files);
  let last = createSecureContext(readTls(files, settings));
  return {
    // Clients copy the options at each connect, so this is called then.
    get secureContext() {
      const current = stampOf(files);
      if (current === stamp) return last;
      try {
        last = createSecureContext(readTls(files, settings));
        stamp = current;
      } catch {
        // The files are being replaced, or are gone. The previous ones may still be valid.
      }
      return last;
    },
  };
}

function isKeyOf(cert: string, key: string): boolean {
  try {
    return new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

function readCertificates(setting: string, file: string): string {
  const text = readPublicFile(setting, file);
  try {
    // A secure context takes a text without certificates for an empty list of authorities.
    void new X509Certificate(text);
  } catch (error) {
    throw new UnusableError(`${setting} names a file without a certificate: ${messageOf(error)}.`);
  }
  return text;
}

function needs(setting: string, other: string): string {
  return `${setting} needs ${other}, which is not set.`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
