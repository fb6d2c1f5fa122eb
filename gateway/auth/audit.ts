/**
 * The audit: one line of JSON for each event that an operator may have to answer for. Repetitions
 * within a second are a single line with their number, so a flood of refused requests costs neither
 * disk nor memory. A line never holds a key, a ticket, a token or a hash.
 */

export type AuditEvent =
  | "key_created"
  | "key_changed"
  | "key_rotated"
  | "key_revoked"
  | "tenant_created"
  | "tenant_changed"
  | "tenant_deleted"
  | "auth_failed"
  | "scope_refused"
  | "rate_limited"
  | "quota_exhausted"
  | "ticket_issued"
  | "subscription_issued"
  | "acted_for"
  | "started_insecure"
  | "auth_required"
  | "keys_file_loaded"
  | "keys_file_refused"
  | "jwks_failed"
  | "reply_forged"
  | "host_refused"
  | "origin_refused"
  | "board_failed";

/** The members of a line besides its event. Clients may have chosen any text among them. */
export interface AuditDetails {
  readonly reason?: string | undefined;
  readonly tenant?: string | undefined;
  /** The key that the event is about. */
  readonly key_id?: string | undefined;
  /** The id of the key that did it, or the name of a program. */
  readonly actor?: string | undefined;
  readonly scope?: string | undefined;
  /** The name of the limit that refused a request. */
  readonly limit?: string | undefined;
  readonly method?: string | undefined;
  /** Without its query. */
  readonly path?: string | undefined;
  readonly status?: number | undefined;
  readonly address?: string | undefined;
  readonly request_id?: string | undefined;
}

interface Counted {
  readonly event: AuditEvent;
  readonly time: string;
  readonly details: AuditDetails;
  count: number;
}

/** Repetitions of an event within this time, in ms, are one line. */
const TOGETHER_MS = 1_000;
/** Most lines within that time. Beyond it, lines for each refusal and reason count the others. */
const MOST_LINES = 200;
/** In characters. A longer text of a client is cut. */
const LONGEST_TEXT = 256;
/** Longer than any secret that could begin within `LONGEST_TEXT` without its end. */
const BEHIND_CUT = 64;
/** Secrets of keys, hashes, tokens and tickets; percent-encoding does not hide the first two. */
const SECRETS = /[0-9A-Za-z]{38,}|\beyJ[\w-]*\.[\w.-]*|\btk_[\w.-]+/g;
const REFUSALS: ReadonlySet<AuditEvent> = new Set([
  "auth_failed",
  "scope_refused",
  "rate_limited",
  "quota_exhausted",
  "host_refused",
  "origin_refused",
  "reply_forged",
  "board_failed",
]);
/** Events whose reason is a client's own text, which a client could choose anew each time. */
const FREE_REASONS: ReadonlySet<AuditEvent> = new Set(["host_refused", "origin_refused"]);

export class Audit {
  readonly #process: string;
  readonly #write: (lines: string) => void;
  readonly #counted = new Map<string, Counted>();
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param process the name of this process in the lines
   * @param write takes whole lines
   */
  constructor(process: string, write: (lines: string) => void) {
    this.#process = process;
    this.#write = write;
  }

  /** Counts an event. Its line comes within a second, or at the next `flush`. */
  note(event: AuditEvent, details: AuditDetails): void {
    this.#timer ??= setTimeout(() => this.flush(), TOGETHER_MS).unref();
    const kind = `${event} ${FREE_REASONS.has(event) ? "" : details.reason}`;
    const name = `${kind} ${details.key_id ?? details.address} ${details.tenant}`;
    // Clients without rights can cause refusals alone, and must not hide another event.
    const isFull = REFUSALS.has(event) && this.#counted.size >= MOST_LINES;
    const known = this.#counted.get(name) ?? (isFull ? this.#counted.get(kind) : undefined);
    if (known !== undefined) known.count++;
    else if (isFull) this.#begin(kind, event, { reason: details.reason, status: details.status });
    else this.#begin(name, event, details);
  }

  /** Writes the lines of all events so far. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#counted.size === 0) return;
    const lines = [...this.#counted.values()].map((counted) => this.#lineOf(counted));
    this.#counted.clear();
    this.#write(lines.join(""));
  }

  #begin(name: string, event: AuditEvent, details: AuditDetails): void {
    const entries = Object.entries(details).map(([key, value]) => [
      key,
      typeof value === "string" ? withoutSecrets(value) : value,
    ]);
    this.#counted.set(name, { event, time: new Date().toISOString(), details: Object.fromEntries(entries), count: 1 });
  }

  #lineOf({ event, time, details, count }: Counted): string {
    const line = JSON.stringify({ audit: true, time, event, ...details, process: this.#process, count });
    // Some readers of logs end a line at a control character that JSON leaves as it is.
    return `${line.replaceAll(/[\u007f-\uffff]/g, escaped)}\n`;
  }
}

/** Replaces each character of a secret before the cut, because a part of a secret is one, too. */
export function withoutSecrets(text: string): string {
  return text
    .slice(0, LONGEST_TEXT + BEHIND_CUT)
    .replaceAll(SECRETS, (secret) => "*".repeat(secret.length))
    .slice(0, LONGEST_TEXT);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
