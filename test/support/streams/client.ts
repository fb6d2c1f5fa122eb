/**
 * A client that reads a stream to its end under any fault. The client repeats a submit under its
 * `Idempotency-Key` until it knows the stream's id. Then it asks gateway after gateway for the
 * records after its last record.
 */
import type { IncomingMessage } from "node:http";
import { errorKinds, isErrorCode } from "#shared/errors.js";
import type { Random } from "../fleet/random.js";
import type { StreamAsk } from "./ask.js";
import { readEventSource, type SourceEnd } from "./event-source.js";
import type { Manner, Reading, StreamOutcome } from "./history.js";
import { submissionOf, recordIn, takeChunk, takePart, takeRecord, takeText } from "./front-doors.js";
import { readGrpc, suitsGrpc } from "./grpc.js";
import { readSocket } from "./websocket.js";

export interface StreamClientSettings {
  /** The gateways to choose from now. */
  readonly urls: () => readonly string[];
  /** The same gateways' addresses of gRPC; absent if no stream is read over gRPC. */
  readonly targets?: () => readonly string[];
  readonly random: Random;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Counted from the first submit on. */
  readonly patienceMs?: number;
  /** Called for each piece that the application gets. */
  readonly onPiece?: (reading: Reading) => void;
}

const MAX_PAUSE_MS = 250;
/** The share of messages at which a client of gRPC leaves, and resumes at another gateway. */
const LEAVES = 0.02;

export class StreamClient {
  readonly #settings: StreamClientSettings;

  constructor(settings: StreamClientSettings) {
    this.#settings = settings;
  }

  /** @param key two readings under the same key read the same stream */
  async read(ask: StreamAsk, manner: Manner, key: string): Promise<Reading> {
    const {
      urls,
      targets = () => [],
      random,
      headers = {},
      patienceMs = 90_000,
      onPiece = () => undefined,
    } = this.#settings;
    const begunAt = performance.now();
    const reading: Reading = { ask, manner, id: undefined, pieces: [], connections: [], begunAt, outcome: undefined };
    let at = random.between(0, urls().length - 1);
    for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      const seen = reading.pieces.length;
      // An answer over gRPC does not name the stream's id, so the client asks once more over HTTP.
      const isGrpc = manner === "grpc" && reading.outcome === undefined;
      const now = isGrpc ? targets() : urls();
      const gateway = now[at++ % now.length] ?? "";
      const connection = { reading, gateway, headers, onPiece, random };
      const way = isGrpc ? listenGrpc : reading.id === undefined ? submit : resume;
      const end = await way(connection, key);
      const submitted = reading.id !== undefined && end.kind === "answered" && end.status === 202;
      if (reading.outcome === undefined && !submitted) reading.outcome = verdictOf(reading, end);
      if (reading.outcome !== undefined && (manner !== "grpc" || reading.id !== undefined)) return reading;
      if (performance.now() - begunAt > patienceMs) {
        reading.outcome = { kind: "unresolved", what: reading.connections.at(-1)?.end ?? "never connected" };
        return reading;
      }
      if (reading.pieces.length > seen || submitted) pauseMs = 5;
      await new Promise((resolve) => setTimeout(resolve, pauseMs * (0.5 + Math.random() / 2)));
    }
  }
}

interface Place {
  readonly reading: Reading;
  readonly gateway: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly onPiece: (reading: Reading) => void;
  readonly random: Random;
}

async function submit(place: Place, key: string): Promise<SourceEnd> {
  const { reading } = place;
  const { path, headers, body } = submissionOf(reading.ask, reading.manner);
  const onHead = ({ headers: answered, statusCode = 0 }: IncomingMessage) => {
    const id = answered["baton-request-id"];
    if (statusCode < 300 && typeof id === "string") reading.id = id;
  };
  const onEvent = reading.manner === "completions" ? takeChunk : takeText;
  return connect(place, path, {
    method: "POST",
    headers: { ...headers, "idempotency-key": key },
    body,
    onHead,
    onEvent: (event, at) => onEvent(reading, event, at),
  });
}

async function listenGrpc({ reading, gateway, headers, onPiece, random }: Place, key: string): Promise<SourceEnd> {
  const connection = { gateway, path: "ModelStreamInfer", begunAt: performance.now(), end: "open" };
  reading.connections.push(connection);
  const end = await readGrpc({
    target: gateway,
    headers,
    ask: reading.ask,
    key,
    after: reading.pieces.at(-1)?.index,
    onPart(part) {
      const goOn = takePart(reading, part, performance.now());
      onPiece(reading);
      return goOn && !random.chance(LEAVES);
    },
  });
  connection.end = inWords(end);
  return end;
}

/**
 * Names the last record in a header or in the query, in turn. A client of `generate_stream` has no
 * index, so it reads all records again and skips as many texts as it has.
 */
async function resume(place: Place): Promise<SourceEnd> {
  const { reading } = place;
  const after = reading.pieces.findLast(({ index }) => index !== undefined)?.index;
  if (reading.manner === "websocket") return listen(place, after);
  let skip = after === undefined ? reading.pieces.length : 0;
  const asHeader = reading.connections.length % 2 === 0 && after !== undefined;
  const query = after === undefined || asHeader ? "" : `?after=${after}`;
  return connect(place, `/v2/requests/${reading.id}/events${query}`, {
    headers: asHeader ? { "last-event-id": String(after) } : {},
    onEvent: (event, at) => {
      if (skip === 0 || event.event === "error") return takeRecord(reading, event, at);
      if (recordIn(event).text !== "") skip--;
      return true;
    },
  });
}

async function listen({ reading, gateway, headers, onPiece }: Place, after: number | undefined): Promise<SourceEnd> {
  const path = `/v2/requests/${reading.id}/ws${after === undefined ? "" : `?after=${after}`}`;
  const connection = { gateway, path, begunAt: performance.now(), end: "open" };
  reading.connections.push(connection);
  const onRecord = (data: string, at: number) => {
    const { index } = JSON.parse(data) as { index: number };
    const goOn = takeRecord(reading, { id: String(index), event: undefined, data }, at);
    onPiece(reading);
    return goOn;
  };
  const end = await readSocket({ gateway, path, headers, onRecord });
  connection.end = inWords(end);
  return end;
}

type Call = Omit<Parameters<typeof readEventSource>[0], "url">;

async function connect({ reading, gateway, headers, onPiece }: Place, path: string, call: Call): Promise<SourceEnd> {
  const connection = { gateway, path, begunAt: performance.now(), end: "open" };
  reading.connections.push(connection);
  const end = await readEventSource({
    ...call,
    headers: { ...headers, ...call.headers },
    url: gateway + path,
    onEvent(event, at) {
      const before = reading.pieces.length;
      const goOn = call.onEvent(event, at);
      if (reading.pieces.length > before) onPiece(reading);
      return goOn;
    },
  });
  connection.end = inWords(end);
  return end;
}

/**
 * An orderly end of the connection is the stream's end for `generate_stream` alone, which has no
 * other. On the other paths more must come.
 */
function verdictOf(reading: Reading, end: SourceEnd): StreamOutcome | undefined {
  if (end.kind === "ended" && reading.manner === "generate_stream" && reading.connections.length === submits(reading)) {
    return { kind: "finished" };
  }
  if (end.kind !== "answered") return undefined;
  const code = /"code"\s*:\s*"([^"]*)"/.exec(end.body)?.[1] ?? "none";
  return mayBeAskedAgain(code, end.status) ? undefined : { kind: "failed", code, what: inWords(end) };
}

function submits({ connections }: Reading): number {
  return connections.filter(({ path }) => !path.startsWith("/v2/requests/")).length;
}

function mayBeAskedAgain(code: string, status: number): boolean {
  if (status === 503 || status === 429) return !isErrorCode(code) || errorKinds[code].retry;
  return false;
}

function inWords(end: SourceEnd): string {
  switch (end.kind) {
    case "answered":
      return `${end.status} ${end.body.slice(0, 200)}`;
    case "cut":
      return `cut: ${end.why}`;
    case "ended":
    case "left":
      return end.kind;
  }
}

export interface StreamLoad {
  readonly asks: readonly StreamAsk[];
  readonly client: StreamClient;
  /** How many streams run at a time. */
  readonly running: number;
  readonly manners: readonly Manner[];
  /** Makes keys differ between loads on the same fleet. */
  readonly name: string;
  readonly onEnd: (reading: Reading) => Promise<void>;
  /** After the abort, no stream begins, except that the load still reads every request once. */
  readonly enough: AbortSignal;
}

/**
 * Keeps a number of streams running: as soon as a stream ends, the next request begins. After
 * `enough` aborts, clients read the last streams to their ends.
 */
export async function keepRunning(load: StreamLoad): Promise<void> {
  const { asks, client, running, manners, name, onEnd, enough } = load;
  let next = 0;
  const one = async () => {
    while (!enough.aborted || next < asks.length) {
      const turn = next++;
      const ask = asks[turn % asks.length];
      const inTurn = manners[(turn + Math.floor(turn / asks.length)) % manners.length];
      if (ask === undefined || inTurn === undefined) throw new Error("a load needs asks and manners");
      // Only records contain all choices of a stream with several.
      const suits = inTurn === "grpc" ? suitsGrpc(ask) : ask.parameters["n"] === undefined || inTurn === "websocket";
      const manner = suits ? inTurn : "events";
      await onEnd(await client.read(ask, manner, `${name}-${turn}`));
    }
  };
  await Promise.all(Array.from({ length: running }, one));
}
