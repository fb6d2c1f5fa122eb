/** Reads the object stores of a server with the client of NATS. */
import { connect, type ObjectStore } from "nats";
import { within } from "#shared/retry.js";

/** A read of an object that is removed meanwhile never ends. */
const PATIENCE_MS = 5_000;

/**
 * Every object, read and compared with its digest; an object that is removed meanwhile has no
 * bytes.
 */
export async function objectsIn(url: string): Promise<{ name: string; bytes: number }[]> {
  const nc = await connect({ servers: url });
  try {
    const manager = await nc.jetstreamManager();
    const found: { name: string; bytes: number }[] = [];
    for await (const { config } of manager.streams.list("$O.>")) {
      const store = await nc.jetstream().views.os(config.name.replace(/^OBJ_/, ""));
      for (const { name } of await store.list()) found.push({ name, bytes: await bytesOf(store, name) });
    }
    return found;
  } finally {
    await nc.close();
  }
}

async function bytesOf(store: ObjectStore, name: string): Promise<number> {
  let bytes = 0;
  const reading = store.getBlob(name).then((blob) => {
    bytes = blob?.length ?? 0;
  });
  // Without an answer the connection closes, and the read rejects.
  reading.catch(() => undefined);
  await within(PATIENCE_MS, reading);
  return bytes;
}

/** Removes all object stores of a server, as an operator might. */
export async function removeStores(url: string): Promise<void> {
  const nc = await connect({ servers: url });
  try {
    const { streams } = await nc.jetstreamManager();
    for await (const { config } of streams.list("$O.>")) await streams.delete(config.name);
  } finally {
    await nc.close();
  }
}

/** How many messages there are, of objects or of their remains. */
export async function messagesIn(url: string): Promise<number> {
  const nc = await connect({ servers: url });
  try {
    let messages = 0;
    for await (const { state } of (await nc.jetstreamManager()).streams.list("$O.>")) messages += state.messages;
    return messages;
  } finally {
    await nc.close();
  }
}
