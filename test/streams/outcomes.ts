/** How requests have ended that nobody knows the ids of: their clients left before they were told. */
import type { Redis } from "ioredis";
import { allKeys } from "../history/floor.js";

export interface Ended {
  /** `result`, the code of an error, or `open`. */
  readonly how: string;
  /** It ran for whoever reads. */
  readonly background: boolean;
  readonly records: number;
}

/** Those that are new since `known`, which are added to it. */
export async function newOutcomes(redis: Redis, known: Set<string>): Promise<Ended[]> {
  const keys = (await allKeys(redis, "out:*")).filter((key) => !known.has(key));
  for (const key of keys) known.add(key);
  return Promise.all(
    keys.map(async (key) => {
      const [fields, records] = await Promise.all([
        redis.hmget(key, "kind", "body", "wanted"),
        redis.llen(key.replace("out:", "log:")),
      ]);
      const [kind, body, wanted] = fields;
      return { how: howOf(kind, body), background: wanted === null, records };
    }),
  );
}

function howOf(kind: string | null | undefined, body: string | null | undefined): string {
  if (kind === "error") return (JSON.parse(body ?? "{}") as { code?: string }).code ?? "error without a code";
  return kind ?? "open";
}
