/**
 * Reads new steps for all models of this worker over one connection. A model is read for only while
 * it has room: at most one batch waits while one runs, so no worker hoards what another could run.
 */
import type { Logger } from "pino";
import { dropIfSilent, masterFor, whenReady, type BlockingReader, type RedisClient } from "#shared/redis/connect.js";
import { isReplyError } from "#shared/redis/script.js";
import { delay, within } from "#shared/retry.js";
import type { Lane } from "#shared/queue/address.js";
import { laneKeys } from "#shared/queue/keys.js";
import type { Delivery } from "#shared/queue/entry.js";
import { refill } from "#shared/queue/work/refill.js";
import { release } from "#shared/queue/work/release.js";
import { createGroup } from "#shared/queue/work/create-group.js";
import { readOwned, waitForNew, type LanesByKey, type Taken } from "#shared/queue/work/stream.js";
import { take } from "#shared/queue/work/take.js";
import { Signal } from "#shared/signal.js";
import { realWorld, type World } from "#shared/world.js";
import type { Intake } from "./holdings.js";

/** A model that is read for. */
export interface Source {
  readonly lanes: LanesByKey;
  readonly intake: Pick<Intake, "room" | "accept">;
}

export interface ReaderSettings {
  /** For this reader alone, since a blocking read holds up what follows it. */
  readonly redis: BlockingReader;
  /** For short commands: it ends a read that blocks in vain. */
  readonly commands: RedisClient;
  readonly consumer: string;
  readonly world?: World;
  readonly log: Logger;
}

/**
 * Redis answers a blocked read after this long at the latest. Each read costs it as much as a beat,
 * and in a large fleet most workers wait.
 */
const BLOCK_MS = 1_000;
/**
 * How often it is tried to end the read that Redis holds blocked, in ms. The command that ends it
 * takes another connection, and may arrive before the read does: then it ends nothing.
 */
const UNBLOCK_EVERY_MS = 50;
/**
 * A link on which nothing comes for longer than this counts as lost: a read blocks for less, and a
 * frozen peer sends no reset. A long answer on a slow link keeps coming, so it is not cut.
 */
const SILENCE_MS = BLOCK_MS + 1_000;
/**
 * At most so often, in ms, a worker asks whether something is parked of the models for which it
 * finds nothing to read.
 */
const PARKED_EVERY_MS = 1_000;
/**
 * What one script call should bring at most, in bytes, unless a single entry has more: Redis is
 * busy with large entries for milliseconds each, and serves nobody else meanwhile.
 */
const TAKEN_BYTES = 1_048_576;
/** With each read that brings smaller entries, the size that is expected shrinks to this part. */
const EXPECTED_SHRINKS = 0.75;
/** The id of a connection whose id the server does not tell; none has it. */
const UNKNOWN = 0;
/**
 * So long after a call without a reply this worker asks again what it owns, in ms. The call may be
 * a read that Redis still holds blocked for a connection that is lost, or it may arrive late.
 */
const AGAIN_MS = [1_500, 5_000, 20_000] as const;
/** Most entries of each lane asked for when this worker may own some without knowing. */
const OWNED_LIMIT = 1_000;

export class Reader {
  /** To be notified when a model may have room for more. */
  readonly room: Signal;
  readonly #settings: ReaderSettings;
  readonly #world: World;
  readonly #sources: Source[] = [];
  /**
   * Those of which this worker may own entries that it has not seen: all of them at the beginning
   * of every connection, since the reply to the last read of the one before may be lost.
   */
  readonly #unasked = new Set<Source>();
  /** When it is asked again what this worker owns, on the world's clock, the next time first. */
  #againAt: readonly number[] = [];
  /** Sources whose last read found something, in the order in which they are asked. */
  readonly #warm = new Set<Source>();
  /** Sources of which the last read of several lanes found something. */
  readonly #crowded = new Set<Source>();
  /**
   * How large an entry of a source may be, in bytes, by what was read of it lately. Before the
   * first read it is not known, and one entry is asked for.
   */
  readonly #expectedBytes = new Map<Source, number>();
  readonly #stopping = new AbortController();
  /** Ends when the reader has stopped; undefined before the first source is added. */
  #running: Promise<void> | undefined;
  /** How many reads there have been: each begins with another lane, so that none waits for ever. */
  #reads = 0;
  /**
   * By source, until when it is known that nothing is parked that it has room for, on
   * `performance.now()`'s clock. Absent when something was found since it was last asked.
   */
  readonly #noneParkedUntil = new Map<Source, number>();
  /** The id at the server of the connection over this socket; undefined before it was asked for. */
  #client: { readonly id: number; readonly stream: BlockingReader["stream"] } | undefined;

  constructor(settings: ReaderSettings) {
    this.#settings = settings;
    this.#world = settings.world ?? realWorld;
    this.room = new Signal(this.#world);
  }

  /** Reads for this model, too, from now on. */
  add(source: Source): void {
    this.#sources.push(source);
    this.#unasked.add(source);
    this.#running ??= this.#run();
    this.room.notify();
  }

  /** See `Intake`. */
  doubt(): void {
    this.#againAt = AGAIN_MS.map((ms) => this.#world.now() + ms);
  }

  /** Stops. The read that Redis holds blocked is ended there, since it may bring something yet. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.room.notify();
    const running = this.#running ?? Promise.resolve();
    do await this.#unblock();
    while (!(await within(UNBLOCK_EVERY_MS, running, this.#world)));
    this.#settings.redis.disconnect();
  }

  async #run(): Promise<void> {
    const { redis, log } = this.#settings;
    const { signal } = this.#stopping;
    const unasked = this.#unasked;
    while (!signal.aborted) {
      const stopWatching = watchSilence(redis, this.#world);
      try {
        if (redis.status !== "ready") await whenReady(redis, signal);
        const [again = Infinity] = this.#againAt;
        if (again <= this.#world.now()) {
          this.#againAt = this.#againAt.slice(1);
          for (const source of this.#sources) unasked.add(source);
        }
        if (unasked.size > 0) await this.#readOwned();
        else await this.#readNew();
      } catch (error) {
        if (signal.aborted) return;
        dropIfSilent(redis, error);
        this.#client = undefined;
        if (isReplyError(error, "NOGROUP")) await this.#createGroups();
        else log.debug({ error: String(error) }, "read failed");
        for (const source of this.#sources) unasked.add(source);
        this.doubt();
        await delay(20, signal, this.#world);
      } finally {
        stopWatching();
      }
    }
  }

  /** What was delivered to this worker before may have run here already. */
  async #readOwned(): Promise<void> {
    const { redis, consumer } = this.#settings;
    for (const source of this.#unasked) {
      source.intake.accept(await readOwned(redis, consumer, source.lanes, OWNED_LIMIT), "suspect");
      this.#unasked.delete(source);
      this.#warm.add(source);
    }
  }

  async #readNew(): Promise<void> {
    for (const source of this.#warm) {
      const room = source.intake.room();
      if (room <= 0) continue;
      const most = Math.min(room, this.#mostAtOnce(source));
      const taken = await this.#take(source, most);
      source.intake.accept(taken, "fresh");
      if (taken.deliveries.length < most) this.#warm.delete(source);
      if (this.#stopping.signal.aborted) return;
    }
    const open = this.#sources.filter(({ intake }) => intake.room() > 0);
    if (open.some((source) => this.#warm.has(source))) return;
    if (open.length === 0) return this.room.wait(this.#world.now() + BLOCK_MS);
    await this.#wait(open);
  }

  /** Waits for the first entry of any of these. */
  async #wait(open: readonly Source[]): Promise<void> {
    const { redis, consumer } = this.#settings;
    const lanes = new Map(open.flatMap((source) => [...source.lanes]));
    // While there was no room a new connection may have come unnoticed.
    const { stream } = redis;
    if (this.#client?.stream !== stream) this.#client = { id: await this.#askId(), stream };
    if (this.#stopping.signal.aborted) return;
    const reading = waitForNew(redis, consumer, lanes, BLOCK_MS);
    if (open.length < this.#sources.length) await this.#endWhenOthersHaveRoom(reading, open);
    const { deliveries, unreadable } = await reading;
    const quiet: Source[] = [];
    for (const source of open) {
      const mine = await this.#withinRoom(
        source,
        deliveries.filter(({ lane }) => isOf(source, lane)),
      );
      const broken = unreadable.filter(({ lane }) => isOf(source, lane));
      if (mine.length + broken.length === 0) {
        quiet.push(source);
        continue;
      }
      this.#warm.add(source);
      this.#noneParkedUntil.delete(source);
      // Where entries come many at a time, the first one waits for those that came with it: else it
      // would run in a batch by itself. A lone step does not wait for another read.
      this.#noteSizes(source, mine);
      const room = this.#crowded.has(source) ? source.intake.room() - mine.length : 0;
      const most = Math.min(room, this.#mostAtOnce(source));
      const first = { deliveries: [...mine], unreadable: broken };
      const taken = most > 0 ? await this.#takeBeside(first, source, most) : first;
      source.intake.accept(taken, "fresh");
    }
    await this.#refill(quiet);
  }

  /**
   * What is parked becomes ready when the scripts that end requests make room. While other workers
   * are long about all that is ready, this worker would find nothing although it has room, however
   * much it finds of other models.
   */
  async #refill(quiet: readonly Source[]): Promise<void> {
    const now = this.#world.now();
    if (quiet.every((source) => now < (this.#noneParkedUntil.get(source) ?? 0))) return;
    for (const source of quiet) this.#noneParkedUntil.set(source, now + PARKED_EVERY_MS);
    const wanted = quiet.map(({ lanes, intake }) => ({ lanes, room: intake.room() }));
    if ((await refill(this.#settings.redis, wanted)) > 0) for (const source of quiet) this.#warm.add(source);
  }

  /**
   * A read of several lanes may bring an entry of each. What is more than the model has room for
   * goes back to the queue at once, since another worker may have room.
   */
  async #withinRoom(source: Source, deliveries: readonly Delivery[]): Promise<readonly Delivery[]> {
    const room = Math.max(0, source.intake.room());
    if (deliveries.length <= room) return deliveries;
    const { commands, consumer, log } = this.#settings;
    try {
      await release({ redis: commands, consumer }, deliveries.slice(room));
      return deliveries.slice(0, room);
    } catch (error) {
      log.debug({ error: String(error) }, "what was read beyond the room could not be given back; it is kept");
      return deliveries;
    }
  }

  /** What was read already is not lost where the read that should add to it fails. */
  async #takeBeside(first: Taken, source: Source, most: number): Promise<Taken> {
    try {
      const { deliveries, unreadable } = await this.#take(source, most);
      return { deliveries: [...first.deliveries, ...deliveries], unreadable: [...first.unreadable, ...unreadable] };
    } catch (error) {
      this.#settings.log.debug({ error: String(error) }, "read failed");
      for (const one of this.#sources) this.#unasked.add(one);
      return first;
    }
  }

  async #take(source: Source, most: number): Promise<Taken> {
    const { redis, consumer } = this.#settings;
    const taken = await take(redis, consumer, this.#turned(source.lanes), most);
    if (taken.deliveries.length > 0) this.#crowded.add(source);
    else this.#crowded.delete(source);
    this.#noteSizes(source, taken.deliveries);
    return taken;
  }

  #mostAtOnce(source: Source): number {
    const bytes = this.#expectedBytes.get(source) ?? TAKEN_BYTES;
    return Math.max(1, Math.floor(TAKEN_BYTES / Math.max(1, bytes)));
  }

  #noteSizes(source: Source, deliveries: readonly Delivery[]): void {
    const before = (this.#expectedBytes.get(source) ?? 0) * EXPECTED_SHRINKS;
    const largest = deliveries.reduce((most, { frame }) => Math.max(most, frame.length), 0);
    if (deliveries.length > 0) this.#expectedBytes.set(source, Math.max(largest, before));
  }

  /**
   * A read names the models that have room when it begins. Another one need not wait for its end.
   */
  async #endWhenOthersHaveRoom(reading: Promise<unknown>, open: readonly Source[]): Promise<void> {
    const read = { over: false };
    const ended = () => {
      read.over = true;
      this.room.notify();
    };
    const over = reading.then(ended, ended);
    while (!read.over) {
      await this.room.wait(Infinity);
      if (read.over || !this.#sources.some((source) => !open.includes(source) && source.intake.room() > 0)) continue;
      await this.#unblock();
      while (this.#client?.id !== UNKNOWN && !(await within(UNBLOCK_EVERY_MS, over, this.#world)))
        await this.#unblock();
      return;
    }
  }

  /** Ends a read that blocks in vain. */
  async #unblock(): Promise<void> {
    const { commands, log } = this.#settings;
    // In a Cluster only the node that is read knows the connection by this id: all lanes of a
    // reader are in one slot there. Another node may have another connection with the same id.
    const [[key = ""] = []] = this.#sources[0]?.lanes ?? [];
    try {
      await masterFor(commands, key)?.client("UNBLOCK", this.#client?.id ?? UNKNOWN);
    } catch (error) {
      log.debug({ error: String(error) }, "a read that blocks could not be ended; it ends by itself");
    }
  }

  /** @returns `UNKNOWN` where the server does not tell */
  async #askId(): Promise<number> {
    const { redis, log } = this.#settings;
    try {
      return await redis.client("ID");
    } catch (error) {
      if (!isReplyError(error, "NOPERM") && !isReplyError(error, "ERR")) throw error;
      log.debug({ error: String(error) }, "the reader's id is not known: reads that block end by themselves");
      return UNKNOWN;
    }
  }

  async #createGroups(): Promise<void> {
    const { redis, log } = this.#settings;
    const lanes = this.#sources.flatMap((source) => [...source.lanes.values()]);
    await Promise.all(lanes.map((lane) => createGroup(redis, lane))).catch((error: unknown) => {
      log.debug({ error: String(error) }, "a group could not be made; it is tried again");
    });
  }

  #turned(lanes: LanesByKey): LanesByKey {
    const all = [...lanes];
    const first = this.#reads++ % all.length;
    return new Map([...all.slice(first), ...all.slice(0, first)]);
  }
}

function isOf({ lanes }: Source, lane: Lane): boolean {
  return lanes.get(laneKeys(lane).ready) !== undefined;
}

/**
 * Replaces the connection each time that nothing has come over it for SILENCE_MS. A connection that
 * is being opened may fall silent like any other.
 * @returns a function that ends it
 */
function watchSilence(redis: BlockingReader, world: World): () => void {
  let { stream } = redis;
  let bytes = stream?.bytesRead;
  const look = () => {
    const open = redis.status === "connect" || redis.status === "ready";
    if (open && redis.stream === stream && stream.bytesRead === bytes) redis.disconnect(true);
    ({ stream } = redis);
    bytes = stream?.bytesRead;
    cancel = world.after(SILENCE_MS, look);
  };
  let cancel = world.after(SILENCE_MS, look);
  return () => cancel();
}
