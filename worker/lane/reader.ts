/**
 * Reads new steps for all models of this worker over one connection. The reader reads for a model
 * only while the model has room: at most one batch waits while another runs. So no worker hoards
 * steps that another worker could run.
 */
import type { Logger } from "pino";
import { dropIfSilent, masterFor, whenReady, type BlockingReader, type RedisClient } from "#shared/redis/connect.js";
import { isReplyError } from "#shared/redis/script.js";
import { delay, within } from "#shared/retry.js";
import type { Lane } from "#shared/queue/address.js";
import { laneKeys } from "#shared/queue/keys.js";
import type { Delivery } from "#shared/queue/entry.js";
import { refill } from "#shared/queue/work/read/refill.js";
import { release } from "#shared/queue/work/read/release.js";
import { createGroup } from "#shared/queue/work/read/create-group.js";
import { readOwned, waitForNew, type LanesByKey, type Taken } from "#shared/queue/work/stream.js";
import { take } from "#shared/queue/work/read/take.js";
import { Signal } from "#shared/signal.js";
import { realWorld, type World } from "#shared/world.js";
import type { Intake } from "./holdings.js";

/** A model to read for. */
export interface Source {
  readonly lanes: LanesByKey;
  /** How many lanes of the model all readers of this worker read, this reader included. */
  readonly laneCount: number;
  readonly intake: Pick<Intake, "room" | "accept">;
}

export interface ReaderSettings {
  /** For this reader alone, because a blocking read holds up all later commands. */
  readonly redis: BlockingReader;
  /** For short commands, such as ending a blocked read. */
  readonly commands: RedisClient;
  readonly consumer: string;
  readonly world?: World;
  readonly log: Logger;
}

/**
 * Redis answers a blocked read after this time at the latest, in ms. Each read costs Redis as much
 * as a beat, and in a large fleet most workers wait.
 */
const BLOCK_MS = 1_000;
/**
 * Times between tries to end a blocked read, in ms. The command takes another connection. If it
 * arrives before the read, it ends nothing, which happens often while a model has always more
 * entries. So the first times are short.
 */
const UNBLOCK_AGAIN_MS = [1, 2, 4, 8, 16, 32] as const;
const UNBLOCK_EVERY_MS = 50;
/**
 * A connection that receives nothing for longer than this, in ms, counts as lost. A read blocks for
 * less, and a frozen peer sends no reset. A long answer on a slow link keeps bytes coming, so the
 * reader does not cut it.
 */
const SILENCE_MS = BLOCK_MS + 1_000;
/** Shortest time, in ms, between two checks for parked requests of models without ready entries. */
const PARKED_EVERY_MS = 1_000;
/**
 * Most bytes for one script call to bring, unless a single entry is larger. Redis is busy with a
 * large entry for milliseconds, and serves no other client meanwhile.
 */
const TAKEN_BYTES = 1_048_576;
/** The factor by which the expected size shrinks with each read of smaller entries. */
const EXPECTED_SHRINKS = 0.75;
/** Stands for the connection's id if the server does not give the id. No connection has this id. */
const UNKNOWN = 0;
/**
 * Times, in ms, after a call without a reply at which this worker reads its own entries again. The
 * call may arrive late, or may be a read that Redis still blocks for a lost connection.
 */
const AGAIN_MS = [1_500, 5_000, 20_000] as const;
/** Most entries of each lane to ask for when this worker may own some without knowing. */
const OWNED_LIMIT = 1_000;

export class Reader {
  /** To be notified when a model may have room for more. */
  readonly room: Signal;
  readonly #settings: ReaderSettings;
  readonly #world: World;
  readonly #sources: Source[] = [];
  /**
   * Sources of which this worker may own entries that it has not seen. At the start of every
   * connection these are all sources, because the reply to the last connection's last read may be
   * lost.
   */
  readonly #unasked = new Set<Source>();
  /**
   * Times of the next reads of this worker's own entries, on the world's clock, the earliest first.
   */
  #againAt: readonly number[] = [];
  /** Sources whose last read may have left entries, in the order of their reads. */
  readonly #warm = new Set<Source>();
  /** Sources for which the last script call found something. */
  readonly #crowded = new Set<Source>();
  /**
   * The expected size of a source's entries, in bytes, from recent reads. Absent before the first
   * entry.
   */
  readonly #expectedBytes = new Map<Source, number>();
  readonly #stopping = new AbortController();
  /** Settles after the reader has stopped; undefined before the first source. */
  #running: Promise<void> | undefined;
  /** The number of reads. Each read begins with another lane, so that no lane waits for ever. */
  #reads = 0;
  /**
   * By source, a time on `performance.now()`'s clock. Until then the reader does not ask for parked
   * requests again. Absent after a read that found something.
   */
  readonly #noneParkedUntil = new Map<Source, number>();
  /** The server's id of the connection over this socket; undefined before the reader has asked. */
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

  /**
   * Stops. Redis itself ends a blocked read, because a cut connection would lose the read's
   * entries.
   */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.room.notify();
    const running = this.#running ?? Promise.resolve();
    await this.#unblockUntil(running);
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

  /** Entries that were delivered to this worker before may have run here already. */
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
      source.intake.accept(await this.#take(source, most), "fresh");
      if (this.#stopping.signal.aborted) return;
    }
    const open = this.#sources.filter(({ intake }) => intake.room() > 0);
    if (open.some((source) => this.#warm.has(source))) return;
    if (open.length === 0) return this.room.wait(this.#world.now() + BLOCK_MS);
    await this.#wait(open);
  }

  /**
   * Waits for new entries of any of these sources. If a model has one lane, a read brings all that
   * an admission call has queued, in one trip.
   */
  async #wait(open: readonly Source[]): Promise<void> {
    const { redis, consumer } = this.#settings;
    const lanes = new Map(open.flatMap((source) => [...source.lanes]));
    // The connection may be new, if it changed while no model had room.
    const { stream } = redis;
    if (this.#client?.stream !== stream) this.#client = { id: await this.#askId(), stream };
    if (this.#stopping.signal.aborted) return;
    const count = Math.max(1, Math.min(...open.map((source) => this.#mostOfEachLane(source))));
    const reading = waitForNew(redis, consumer, lanes, count, BLOCK_MS);
    if (open.length < this.#sources.length) await this.#endWhenOthersHaveRoom(reading, open);
    const { deliveries, unreadable } = await reading;
    const quiet: Source[] = [];
    for (const source of open) {
      const found = deliveries.filter(({ lane }) => isOf(source, lane));
      const mine = await this.#withinRoom(source, found);
      const broken = unreadable.filter(({ lane }) => isOf(source, lane));
      if (mine.length + broken.length === 0) {
        quiet.push(source);
        continue;
      }
      this.#noneParkedUntil.delete(source);
      this.#noteSizes(source, mine);
      // Redis before 7.2 answers a read of several lanes with entries of one.
      const isFull = found.length + broken.length >= count;
      const room = source.intake.room() - mine.length;
      if (source.laneCount > 1 || (isFull && room > 0)) this.#warm.add(source);
      // In a busy lane the first entries wait for the entries that came with them, because they
      // would otherwise run in a batch by themselves. A lone step does not wait for another read.
      const isBusy = this.#crowded.has(source) || (isFull && count > 1);
      const most = isBusy && this.#warm.has(source) ? Math.min(room, this.#mostAtOnce(source)) : 0;
      const first = { deliveries: [...mine], unreadable: broken };
      const taken = most > 0 ? await this.#takeBeside(first, source, most) : first;
      source.intake.accept(taken, "fresh");
    }
    await this.#refill(quiet);
  }

  /**
   * Makes parked requests ready. Usually the scripts that end requests do so. But if other workers
   * hold all ready entries for long, this worker would find nothing although it has room, even
   * while it finds entries of other models.
   */
  async #refill(quiet: readonly Source[]): Promise<void> {
    const now = this.#world.now();
    if (quiet.every((source) => now < (this.#noneParkedUntil.get(source) ?? 0))) return;
    for (const source of quiet) this.#noneParkedUntil.set(source, now + PARKED_EVERY_MS);
    const wanted = quiet.map(({ lanes, intake }) => ({ lanes, room: intake.room() }));
    if ((await refill(this.#settings.redis, wanted)) > 0) for (const source of quiet) this.#warm.add(source);
  }

  /**
   * A read of several lanes may bring an entry of each lane. Entries beyond the model's room go
   * back to the queue at once, because another worker may have room.
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

  /** Keeps the entries of the first read if the second read fails. */
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
    if (taken.deliveries.length < most) this.#warm.delete(source);
    this.#noteSizes(source, taken.deliveries);
    return taken;
  }

  /**
   * The most entries of each lane that a blocked read may bring for this source. Without an entry
   * so far, the source expects an empty stream: an admission call brings few bytes (`CALL_LIMITS`).
   */
  #mostOfEachLane(source: Source): number {
    const most = this.#expectedBytes.has(source) ? this.#mostAtOnce(source) : Infinity;
    return Math.floor(Math.min(source.intake.room(), most) / source.laneCount);
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
   * A read names the models that have room when it begins. This ends the read as soon as another
   * model has room.
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
      if (this.#client?.id === UNKNOWN) return;
      return this.#unblockUntil(over);
    }
  }

  async #unblockUntil(over: Promise<unknown>): Promise<void> {
    for (let i = 0; ; i++) {
      await this.#unblock();
      if (await within(UNBLOCK_AGAIN_MS[i] ?? UNBLOCK_EVERY_MS, over, this.#world)) return;
    }
  }

  /** Ends a read that Redis holds blocked. */
  async #unblock(): Promise<void> {
    const { commands, log } = this.#settings;
    // In a Cluster, only the node of the read knows the connection by this id. All lanes of a
    // reader are in one slot there. Another node may have another connection with the same id.
    const [[key = ""] = []] = this.#sources[0]?.lanes ?? [];
    try {
      await masterFor(commands, key)?.client("UNBLOCK", this.#client?.id ?? UNKNOWN);
    } catch (error) {
      log.debug({ error: String(error) }, "a read that blocks could not be ended; it ends by itself");
    }
  }

  /** @returns `UNKNOWN` if the server does not give the id */
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
 * Replaces the connection whenever nothing has come over it for SILENCE_MS. A connection that is
 * opening may fall silent, too.
 * @returns a function that ends the watch
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
