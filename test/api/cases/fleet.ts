/** `/v2/fleet`: the names of all members, because most numbers differ from run to run. */
import type { Recorder } from "../recording/recorder.js";

export async function fleet(api: Recorder): Promise<void> {
  for (const [name, asker] of [
    ["GET /v2/fleet of a tenant", api],
    ["GET /v2/fleet without a tenant", api.withoutTenant()],
  ] as const) {
    const answer = await asker.ask({ method: "GET", path: "/v2/fleet" });
    const shape = JSON.stringify(shapeOf(JSON.parse(answer.body.toString())), null, 1);
    const { "content-length": _, ...headers } = answer.headers;
    asker.keep(name, { ...answer, headers, body: Buffer.from(shape) });
  }
}

/** The same value with the kind of each number and text in its place. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf);
  if (typeof value !== "object" || value === null) return typeof value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member)]));
}
