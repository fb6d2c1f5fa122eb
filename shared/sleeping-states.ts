/**
 * Checkpoints of idle sequences, as files in a folder that all workers share. A pointer replaces
 * such a checkpoint in Redis: `disk:<bytes of the state>:<folder>:<file>`, under the same key and
 * with the same TTL. A process writes a file once, under a unique name, and the file is on the disk
 * before its pointer is in Redis. The file's first line is the key, so that a worker can recognise
 * files without a pointer.
 */
import { createHash, randomBytes } from "node:crypto";
import { link, mkdir, open, readdir, readFile, rename, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Logger } from "pino";

const PREFIX = "disk:";
/**
 * The file that holds the folder's own name. The name distinguishes a folder that has lost a file
 * from a folder that is not mounted, or is not the writer's folder.
 */
const MARK = "baton-sleeping-states";
/**
 * The shortest time between two log lines about unreadable states, in ms, instead of a line for
 * each step.
 */
const LOG_EVERY_MS = 10_000;
/** In bytes; no key of a checkpoint is longer. */
const LONGEST_KEY = 4_096;

/** Whether the value of a checkpoint's key is a pointer to a frame on disk. */
export function isPointer(value: Buffer | null | undefined): value is Buffer {
  return value?.toString("latin1", 0, PREFIX.length) === PREFIX;
}

export class SleepingStates {
  readonly #folder: string | undefined;
  readonly #log: Logger;
  #loggedAt = -Infinity;

  /**
   * @param folder undefined if the operator has configured none
   * @param secret the deployment's; each deployment has its own subfolder
   */
  constructor(folder: string | undefined, secret: Buffer, log: Logger) {
    const deployment = createHash("sha256").update(secret).digest("hex").slice(0, 16);
    this.#folder = folder === undefined ? undefined : join(folder, deployment);
    this.#log = log;
  }

  /**
   * Makes the deployment's own folder, and names it. Never makes the configured folder, because a
   * new folder would hide that a disk is not mounted.
   * @throws the file system's error
   */
  async prepare(): Promise<void> {
    const folder = this.#configured();
    await makeFolder(folder);
    if ((await nameOf(folder).catch(nullIfGone)) !== null) return;
    const name = randomBytes(6).toString("hex");
    const draft = join(folder, `${name}.new`);
    await writeFlushed(draft, [name]);
    // If another process has named the folder meanwhile, that name stays.
    await link(draft, join(folder, MARK)).catch((error: unknown) => {
      if (!isThere(error)) throw error;
    });
    await unlink(draft);
    await flushFolder(folder);
  }

  /**
   * @param key of the checkpoint in Redis
   * @param frame of the checkpoint (frame.ts)
   * @returns the pointer, once the file outlives a power cut
   * @throws the file system's error
   */
  async write(key: string, frame: Buffer): Promise<string> {
    const folder = this.#configured();
    const name = `${createHash("sha256").update(key).digest("hex").slice(0, 32)}.${randomBytes(6).toString("hex")}`;
    const path = join(folder, name.slice(0, 2), name);
    const pointer = `${PREFIX}${frame.length - 4 - frame.readUInt32LE(0)}:${await nameOf(folder)}:${name}`;
    await makeFolder(dirname(path));
    try {
      await writeFlushed(`${path}.new`, [`${key}\n`, frame]);
      await rename(`${path}.new`, path);
    } catch (error) {
      // Repeated attempts must not fill a full disk further.
      await unlink(`${path}.new`).catch(() => undefined);
      throw error;
    }
    await flushFolder(dirname(path));
    await flushFolder(folder);
    return pointer;
  }

  /**
   * @param pointer that `isPointer` has recognised
   * @returns the checkpoint's frame, unchecked; null if the file is gone; undefined if this process
   *   cannot read the folder, which it logs
   */
  async read(pointer: Buffer): Promise<Buffer | null | undefined> {
    const [, , written = "", name = ""] = pointer.toString("latin1").split(":");
    try {
      if (this.#folder === undefined) throw new Error("this process has no BATON_HIBERNATE_DIR");
      if ((await nameOf(this.#folder)) !== written) {
        throw new Error("BATON_HIBERNATE_DIR is not the folder that it was written to: all must share one");
      }
      const content = await readFile(join(this.#folder, name.slice(0, 2), name)).catch(nullIfGone);
      return content && content.subarray(content.indexOf("\n") + 1);
    } catch (error) {
      this.#logUnreadable(error);
      return undefined;
    }
  }

  /** Yields the names of all complete files. */
  async *files(): AsyncGenerator<string> {
    const folder = this.#configured();
    for (const part of await readdir(folder)) {
      if (part.length !== 2) continue;
      for (const name of await readdir(join(folder, part))) if (!name.endsWith(".new")) yield name;
    }
  }

  /**
   * Removes files that are still incomplete after this time, because the process that wrote them
   * has died.
   * @returns the number of removed files
   */
  async removeDrafts(olderThanMs: number): Promise<number> {
    const folder = this.#configured();
    let removed = 0;
    for (const name of await readdir(folder, { recursive: true })) {
      if (!name.endsWith(".new")) continue;
      const path = join(folder, name);
      const facts = await stat(path).catch(nullIfGone);
      if (facts === null || Date.now() - facts.mtimeMs < olderThanMs) continue;
      await unlink(path).catch(nullIfGone);
      removed++;
    }
    return removed;
  }

  /** @returns the key whose checkpoint a file has; undefined if the file is gone */
  async keyOf(name: string): Promise<string | undefined> {
    const file = await open(this.#path(name)).catch(nullIfGone);
    if (file === null) return undefined;
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(LONGEST_KEY), 0, LONGEST_KEY, 0);
      const head = buffer.toString("utf8", 0, bytesRead);
      return head.slice(0, Math.max(0, head.indexOf("\n")));
    } finally {
      await file.close();
    }
  }

  async remove(name: string): Promise<void> {
    await unlink(this.#path(name)).catch(nullIfGone);
  }

  #path(name: string): string {
    return join(this.#configured(), name.slice(0, 2), name);
  }

  #configured(): string {
    if (this.#folder === undefined) throw new TypeError("there is no folder for sleeping states");
    return this.#folder;
  }

  #logUnreadable(error: unknown): void {
    if (performance.now() - this.#loggedAt < LOG_EVERY_MS) return;
    this.#loggedAt = performance.now();
    this.#log.error({ error: String(error) }, "the state of a sequence lies on disk and cannot be read here");
  }
}

/** @returns the file that a pointer names; undefined for other text */
export function fileOf(pointer: string): string | undefined {
  return /^disk:\d+:[0-9a-f]{12}:([0-9a-f]{32}\.[0-9a-f]{12})$/.exec(pointer)?.[1];
}

/** The parent must exist. */
async function makeFolder(path: string): Promise<void> {
  await mkdir(path).catch((error: unknown) => {
    if (!isThere(error)) throw error;
  });
}

function isThere(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "EEXIST";
}

async function nameOf(folder: string): Promise<string> {
  return readFile(join(folder, MARK), "utf8");
}

async function writeFlushed(path: string, parts: readonly (string | Buffer)[]): Promise<void> {
  const file = await open(path, "wx");
  try {
    for (const part of parts) await file.writeFile(part);
    await file.sync();
  } finally {
    await file.close();
  }
}

function nullIfGone(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
  throw error;
}

/** A renamed file outlives a power cut only after its folder is on the disk. */
async function flushFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
