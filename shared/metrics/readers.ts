/**
 * Says who may read metrics. Programs of this machine may, and other machines need a token. A
 * process whose metrics every machine could read does not start, unless the operator takes the
 * risk.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { UnusableError } from "../exit.js";
import { isLoopback, parseOpen } from "../listening/settings.js";
import { readSecretLines } from "../secret-file.js";
import type { ProcessConfig } from "./settings.js";

export type ReaderSettings = Pick<
  ProcessConfig,
  "BATON_METRICS_HOST" | "BATON_METRICS_TOKEN_FILE" | "BATON_PUBLISH" | "BATON_INSECURE" | "BATON_AUTH_OPEN"
>;

const TOKEN_FILE = "BATON_METRICS_TOKEN_FILE";

/** @returns undefined if the settings name no file with a token @throws UnusableError */
export function metricsToken({ BATON_METRICS_TOKEN_FILE: file }: ReaderSettings): MetricsToken | undefined {
  return file === undefined ? undefined : new MetricsToken(readSecretLines(TOKEN_FILE, file)[0] ?? "");
}

export class MetricsToken {
  readonly #digest: Buffer;

  constructor(text: string) {
    this.#digest = digest(text);
  }

  /** @param authorization the header of a request */
  isIn(authorization: string | undefined): boolean {
    const [, text] = /^Bearer +(\S+)$/i.exec(authorization ?? "") ?? [];
    return text !== undefined && timingSafeEqual(digest(text), this.#digest);
  }
}

/**
 * Whether readers need no credential.
 * @throws UnusableError if they need one and the settings name none
 */
export function isOpen(settings: ReaderSettings): boolean {
  const { BATON_METRICS_HOST: host, BATON_PUBLISH: published, BATON_INSECURE: insecure } = settings;
  const isForAll = parseOpen(settings.BATON_AUTH_OPEN)?.includes("metrics") === true;
  if (isForAll || insecure !== undefined || isLoopback(published ?? host)) return true;
  if (settings.BATON_METRICS_TOKEN_FILE !== undefined) return false;
  const named = published === undefined ? `BATON_METRICS_HOST is ${host}` : `BATON_PUBLISH is ${published}`;
  throw new UnusableError(
    `${TOKEN_FILE} is not set and ${named}: every machine that reaches this port could read the metrics. Name a file ` +
      "with a token, listen on 127.0.0.1, or leave metrics open with BATON_AUTH_OPEN=metrics.",
  );
}

/** All digests have one length, so every comparison takes the same time. */
function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
