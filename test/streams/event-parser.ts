/** Server-sent events out of a connection's pieces: an event counts once its empty line has come, so one that is cut in the middle was never seen. */
export interface ServerEvent {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: string;
}

export class EventParser {
  #rest = "";

  push(text: string): ServerEvent[] {
    const blocks = (this.#rest + text).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    return blocks.flatMap(eventOf);
  }
}

/** Comments and `retry:` are no events. */
function eventOf(block: string): ServerEvent[] {
  const lines = block.split("\n");
  const field = (name: string) =>
    lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2));
  const data = field("data");
  if (data.length === 0) return [];
  return [{ id: field("id").at(-1), event: field("event").at(-1), data: data.join("\n") }];
}
