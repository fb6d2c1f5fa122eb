/** What NATS's own client finds in the object stores of a server. */
import { connect } from "nats";

/** Every object, read and compared with its digest. */
export async function objectsIn(url: string): Promise<{ name: string; bytes: number }[]> {
  const nc = await connect({ servers: url });
  try {
    const manager = await nc.jetstreamManager();
    const found: { name: string; bytes: number }[] = [];
    for await (const { config } of manager.streams.list("$O.>")) {
      const store = await nc.jetstream().views.os(config.name.replace(/^OBJ_/, ""));
      for (const { name } of await store.list()) found.push({ name, bytes: (await store.getBlob(name))?.length ?? 0 });
    }
    return found;
  } finally {
    await nc.close();
  }
}

/** How many messages there are, of objects or of what was left of them. */
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
