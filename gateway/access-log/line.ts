/** Writes the line of a request: its members always in one order, null if unknown. */
import type { ErrorCode } from "#shared/errors.js";
import type { Timings } from "#shared/contract/timings.js";
import { FreeTexts, quoted } from "./texts.js";

/** All that a line says. */
export interface LineFacts {
  /** When the answer ended, in ms since 1970. */
  readonly time: number;
  readonly id: string | undefined;
  readonly request: string | undefined;
  readonly gateway: string;
  readonly tenant: string | undefined;
  readonly client: string | undefined;
  readonly protocol: string | undefined;
  readonly method: string | undefined;
  readonly route: string | undefined;
  /** Without its query. */
  readonly path: string | undefined;
  readonly model: string | undefined;
  readonly version: string | undefined;
  readonly sequence: string | undefined;
  readonly step: number | undefined;
  readonly status: number | undefined;
  readonly code: ErrorCode | undefined;
  readonly replayed: boolean | undefined;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** How long the answer took, and how long until its first byte. */
  readonly ms: number;
  readonly firstMs: number | undefined;
  readonly timings: Timings | undefined;
  readonly worker: string | undefined;
  readonly records: number | undefined;
  readonly tokensIn: number | undefined;
  readonly tokensOut: number | undefined;
  readonly isWhole: boolean;
  readonly trace: string | undefined;
  readonly agent: string | undefined;
}

const paths = new FreeTexts(256);
const agents = new FreeTexts(128);
/** In characters. */
const LONGEST_SEQUENCE = 128;

export function lineOf(of: LineFacts): string {
  return (
    `{"time":"${rfc3339(of.time)}","id":${quoted(of.id)},"request":${quoted(of.request)},"gateway":"${of.gateway}",` +
    `"tenant":${named(of.tenant)},"client":${named(of.client)},"protocol":${named(of.protocol)},` +
    `"method":${named(of.method)},"route":${named(of.route)},"path":${paths.quoted(of.path)},` +
    `"model":${named(of.model)},"version":${quoted(of.version)},"sequence":${quoted(of.sequence?.slice(0, LONGEST_SEQUENCE))},` +
    `"step":${of.step ?? null},"status":${of.status ?? null},"code":${named(of.code)},` +
    `"replayed":${of.replayed ?? null},"bytes_in":${of.bytesIn},"bytes_out":${of.bytesOut},"ms":${micros(of.ms)},` +
    `"first_ms":${micros(of.firstMs)},"queue_ms":${of.timings?.queueMs ?? null},"run_ms":${of.timings?.runMs ?? null},` +
    `"worker":${named(of.worker)},"records":${of.records ?? null},"tokens_in":${of.tokensIn ?? null},` +
    `"tokens_out":${of.tokensOut ?? null},"ended":"${of.isWhole ? "sent" : "cut"}","trace":${named(of.trace)},` +
    `"agent":${agents.quoted(of.agent)}}\n`
  );
}

/** Quotes a text whose characters need no escape, because no client has chosen them freely. */
function named(text: string | undefined): string {
  return text === undefined ? "null" : `"${text}"`;
}

/** Cuts a time in ms to whole µs. */
function micros(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms * 1_000) / 1_000;
}

let lastMs = Number.NaN;
let lastText = "";

function rfc3339(ms: number): string {
  if (ms !== lastMs) {
    lastMs = ms;
    lastText = new Date(ms).toISOString();
  }
  return lastText;
}
