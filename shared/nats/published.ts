/** Counts the messages over NATS of which there are many. */
import { cells, type Cell } from "../metrics/cells.js";

/** An outcome for a gateway, or a record of a stream. */
type Kind = "reply" | "record";

interface Published {
  readonly messages: Cell;
  readonly bytes: Cell;
}

/** Made at the first message, because most processes publish only one kind. */
const ofKind = new Map<Kind, Published>();

/** @param messages the number of messages of these bytes each */
export function countPublished(kind: Kind, bytes: number, messages = 1): void {
  let found = ofKind.get(kind);
  if (found === undefined) {
    found = {
      messages: cells.counter("baton_nats_published_total", { kind }),
      bytes: cells.counter("baton_nats_publish_bytes_total", { kind }),
    };
    ofKind.set(kind, found);
  }
  cells.add(found.messages, messages);
  cells.add(found.bytes, bytes * messages);
}
