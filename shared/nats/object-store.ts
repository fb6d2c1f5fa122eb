/**
 * Objects in JetStream's object store, in the layout that every NATS client reads (ADR-20 of NATS):
 * an object is the messages on a subject, and a message on another subject describes them. The
 * object store of the NATS client has no flow control, and cannot begin to read in the middle. So
 * this store writes a message at a time, and fetches each message on demand.
 */
import { createHash, randomBytes, type Hash } from "node:crypto";
import { MissingObject, StoreFull, StoreUnavailable, type ObjectStore } from "../object-store.js";
import { delay } from "../retry.js";
import {
  DiscardPolicy,
  headers,
  StorageType,
  type Msg,
  type Link,
  type NatsConnection,
  type StreamConfig,
} from "./client.js";
import { connectForBulk } from "./connect.js";

export interface NatsStoreSettings extends Link {
  /** `[A-Za-z0-9_-]+`. The store makes the bucket if it does not exist. */
  readonly bucket: string;
  /** How many servers of a NATS cluster keep each object. */
  readonly replicas: number;
}

/** Bytes of a message, as in the NATS clients. */
const CHUNK_BYTES = 131_072;
/** The offset of a chunk in the object, so that a read can begin anywhere. */
const OFFSET = "Baton-Offset";
/** How long to wait for a request to JetStream, in ms. */
const REQUEST_MS = 2_000;
/** How long to retry a message while NATS is away, in ms. */
const BUDGET_MS = 4_000;
const PAUSE_MS = 100;
/** The error codes with which JetStream reports that it has no room. */
const NO_ROOM: ReadonlySet<number> = new Set([10_023, 10_047, 10_077, 10_028]);
/**
 * JetStream's error code if another process has written the subject's last message: there are two
 * writers.
 */
const WRONG_LAST = 10_071;

/** The message that describes an object. Only the NATS clients read the other members. */
interface Description {
  readonly size: number;
  readonly chunks: number;
  readonly nuid: string;
  readonly metadata?: { readonly first?: string; readonly last?: string };
}

export class NatsObjectStore implements ObjectStore {
  readonly #settings: NatsStoreSettings;
  readonly #stream: string;
  #opening: Promise<NatsConnection> | undefined;
  /** Whether the stream existed at the last check. */
  #isMade = false;

  constructor(settings: NatsStoreSettings) {
    this.#settings = settings;
    this.#stream = `OBJ_${settings.bucket}`;
  }

  put(name: string, source: AsyncIterable<Uint8Array>): Promise<number> {
    return this.#unlessGone(this.#write(name, source));
  }

  async #write(name: string, source: AsyncIterable<Uint8Array>): Promise<number> {
    const nc = await this.#ready();
    await this.remove(name);
    const writer = new Writer(nc, this.#stream, this.#chunks(name));
    for await (const piece of source) await writer.add(piece);
    const whole = await writer.end();
    const description = {
      name,
      bucket: this.#settings.bucket,
      nuid: nuidOf(name),
      mtime: new Date().toISOString(),
      options: { max_chunk_size: CHUNK_BYTES },
      ...whole,
    };
    const options = { headers: headers(), timeout: REQUEST_MS };
    options.headers.set("Nats-Rollup", "sub");
    const text = Buffer.from(JSON.stringify(description));
    await retrying(() => nc.jetstream().publish(this.#meta(name), text, options));
    return whole.size;
  }

  async *read(name: string, from = 0): AsyncGenerator<Buffer> {
    const nc = await this.#ready();
    const { size, nuid, metadata = {} } = await this.#describe(nc, name);
    if (from >= size) return;
    const subject = `$O.${this.#settings.bucket}.C.${nuid}`;
    const fetch = (seq: number) => this.#fetch(nc, subject, seq);
    let at = from;
    let next = await seek(fetch, from, { size, first: Number(metadata.first ?? 1), last: Number(metadata.last ?? 1) });
    for (;;) {
      const { seq, bytes, offset } = next;
      if (offset > at) throw new StoreUnavailable(`bytes of ${name} are missing`);
      const end = offset + bytes.length;
      const piece = bytes.subarray(at - offset);
      at = end;
      if (end >= size) {
        yield piece;
        return;
      }
      // Fetches the next chunk while the reader handles the previous chunk.
      const fetching = fetch(seq + 1);
      fetching.catch(() => undefined);
      yield piece;
      next = await fetching;
    }
  }

  async remove(name: string): Promise<void> {
    const nc = await this.#ready();
    const purge = async () => {
      const { streams } = await this.#manager(nc);
      await streams.purge(this.#stream, { filter: this.#meta(name) });
      await streams.purge(this.#stream, { filter: this.#chunks(name) });
    };
    await this.#unlessGone(retrying(purge));
  }

  async close(): Promise<void> {
    const nc = await this.#opening?.catch(() => undefined);
    await nc?.close();
  }

  /**
   * After a failure the next call checks that the stream exists, because another client may have
   * removed it.
   */
  async #unlessGone<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      this.#isMade = false;
      throw error;
    }
  }

  #chunks(name: string): string {
    return `$O.${this.#settings.bucket}.C.${nuidOf(name)}`;
  }

  #meta(name: string): string {
    return `$O.${this.#settings.bucket}.M.${padded(Buffer.from(name).toString("base64url"))}`;
  }

  async #describe(nc: NatsConnection, name: string): Promise<Description> {
    const found = await this.#unlessGone(retrying(() => this.#ask(nc, { last_by_subj: this.#meta(name) })));
    if (found === undefined) throw new MissingObject(`there is no object ${name}`);
    return JSON.parse(Buffer.from(found.data).toString()) as Description;
  }

  /** The first chunk with this sequence number or a higher number. */
  async #fetch(nc: NatsConnection, subject: string, seq: number): Promise<Chunk> {
    const found = await retrying(async () => {
      const message = await this.#ask(nc, { seq, next_by_subj: subject });
      // A server that lags behind the others may not have the message yet.
      if (message === undefined) throw new StoreUnavailable("bytes of an object are missing");
      return message;
    });
    const { data } = found;
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    return { seq: headerOf(found, "Nats-Sequence"), bytes, offset: headerOf(found, OFFSET) };
  }

  /** @returns undefined if there is no such message */
  async #ask(
    nc: NatsConnection,
    query: { readonly last_by_subj: string } | { readonly seq: number; readonly next_by_subj: string },
  ): Promise<Msg | undefined> {
    const subject = `$JS.API.DIRECT.GET.${this.#stream}`;
    const answer = await nc.request(subject, JSON.stringify(query), { timeout: REQUEST_MS });
    const status = answer.headers?.code ?? 0;
    if (status === 404) return undefined;
    if (status >= 400) throw new StoreUnavailable(`JetStream answers ${status} ${answer.headers?.description ?? ""}`);
    return answer;
  }

  #manager(nc: NatsConnection) {
    return nc.jetstreamManager({ timeout: REQUEST_MS, checkAPI: false });
  }

  /** @throws StoreUnavailable */
  async #ready(): Promise<NatsConnection> {
    const { replicas, bucket } = this.#settings;
    try {
      this.#opening ??= connectForBulk(this.#settings);
      const nc = await this.#opening;
      if (!this.#isMade) {
        const { streams } = await this.#manager(nc);
        const known = await streams.info(this.#stream).catch(() => undefined);
        if (known === undefined) await streams.add(streamConfig(bucket, this.#stream, replicas));
        this.#isMade = true;
      }
      return nc;
    } catch (cause) {
      const nc = await this.#opening?.catch(() => undefined);
      if (nc === undefined) this.#opening = undefined;
      throw new StoreUnavailable("NATS or its JetStream cannot be asked now", { cause });
    }
  }
}

function streamConfig(bucket: string, name: string, replicas: number): Partial<StreamConfig> & { name: string } {
  return {
    name,
    description: "files of Baton",
    subjects: [`$O.${bucket}.C.>`, `$O.${bucket}.M.>`],
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    allow_rollup_hdrs: true,
    allow_direct: true,
    num_replicas: replicas,
  };
}

interface Chunk {
  readonly seq: number;
  readonly offset: number;
  readonly bytes: Buffer;
}

/**
 * Writes the chunks of an object. JetStream acknowledges each chunk before the writer sends the
 * next.
 */
class Writer {
  readonly #nc: NatsConnection;
  readonly #stream: string;
  readonly #subject: string;
  /** Distinguishes two writers of the same object. */
  readonly #attempt = randomBytes(12).toString("base64url");
  readonly #hash: Hash = createHash("sha256");
  #chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  #filled = 0;
  #size = 0;
  #chunks = 0;
  #first = 0;
  #last = 0;
  #sending: Promise<void> = Promise.resolve();

  constructor(nc: NatsConnection, stream: string, subject: string) {
    this.#nc = nc;
    this.#stream = stream;
    this.#subject = subject;
  }

  async add(piece: Uint8Array): Promise<void> {
    for (let taken = 0; taken < piece.length;) {
      const part = piece.subarray(taken, taken + CHUNK_BYTES - this.#filled);
      this.#chunk.set(part, this.#filled);
      this.#filled += part.length;
      taken += part.length;
      if (this.#filled === CHUNK_BYTES) await this.#send();
    }
  }

  async end() {
    if (this.#filled > 0) await this.#send();
    await this.#sending;
    return {
      size: this.#size,
      chunks: this.#chunks,
      digest: `SHA-256=${padded(this.#hash.digest("base64url"))}`,
      metadata: { first: String(this.#first), last: String(this.#last) },
    };
  }

  /** Sends a chunk while the caller fills the next. */
  async #send(): Promise<void> {
    const bytes = this.#chunk.subarray(0, this.#filled);
    this.#chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
    this.#filled = 0;
    this.#hash.update(bytes);
    await this.#sending;
    this.#sending = this.#publish(bytes, this.#size);
    // The next `await` of this promise throws the error.
    this.#sending.catch(() => undefined);
    this.#size += bytes.length;
    this.#chunks++;
  }

  async #publish(bytes: Buffer, offset: number): Promise<void> {
    const options = {
      headers: headers(),
      timeout: REQUEST_MS,
      // If an acknowledgement was lost, JetStream recognises the copy of the message by this id.
      msgID: `${this.#attempt}-${offset}`,
      // If two processes write the object, the write of one fails.
      expect: { streamName: this.#stream, lastSubjectSequence: this.#last },
    };
    options.headers.set(OFFSET, String(offset));
    const { seq } = await retrying(() => this.#nc.jetstream().publish(this.#subject, bytes, options));
    if (this.#first === 0) this.#first = seq;
    this.#last = seq;
  }
}

/**
 * Finds the chunk with a byte. The chunks of a writer mostly follow each other, so the first guess
 * is mostly right. If other writers were active meanwhile, a binary search finds the chunk.
 */
async function seek(
  fetch: (seq: number) => Promise<Chunk>,
  at: number,
  { size, first, last }: { readonly size: number; readonly first: number; readonly last: number },
): Promise<Chunk> {
  let low = first;
  let high = last;
  let guess = first + Math.floor((at / size) * (last - first + 1));
  for (;;) {
    const chunk = await fetch(Math.min(Math.max(guess, low), high));
    if (chunk.offset <= at && at < chunk.offset + chunk.bytes.length) return chunk;
    if (chunk.offset > at) high = Math.min(guess, chunk.seq) - 1;
    else low = chunk.seq + 1;
    if (low > high) throw new StoreUnavailable("bytes of an object are missing");
    guess = Math.floor((low + high) / 2);
  }
}

/**
 * Repeats a call while NATS is away.
 * @throws StoreUnavailable, StoreFull
 */
async function retrying<T>(call: () => Promise<T>): Promise<T> {
  const giveUpAt = performance.now() + BUDGET_MS;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const code = jetStreamCode(error);
      if (code !== undefined && NO_ROOM.has(code)) throw new StoreFull("JetStream has no room", { cause: error });
      if (code === WRONG_LAST) throw new StoreUnavailable("somebody else writes this object", { cause: error });
      if (performance.now() > giveUpAt) throw new StoreUnavailable("JetStream does not answer", { cause: error });
    }
    await delay(PAUSE_MS);
  }
}

function jetStreamCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("api_error" in error)) return undefined;
  const { api_error: told } = error as { readonly api_error?: { readonly err_code?: number } };
  return told?.err_code;
}

function headerOf(message: Msg, name: string): number {
  return Number(message.headers?.get(name) ?? Number.NaN);
}

/**
 * The NATS clients choose a random id. This id follows from the name, so that Baton can remove the
 * chunks of a writer that died.
 */
function nuidOf(name: string): string {
  return Buffer.from(name).toString("base64url");
}

/** The NATS clients pad base64url, and Node does not. */
function padded(text: string): string {
  return text.padEnd(Math.ceil(text.length / 4) * 4, "=");
}
