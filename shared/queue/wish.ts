/**
 * The fleet's wish: the models that clients have asked workers to load or to unload, one hash for
 * the whole deployment. Gateways change the wish (`admission/note-wish.lua`). A worker reads the
 * wish before it loads its models, and learns of a change from its heartbeat.
 */
import { z } from "zod";
import type { RedisClient } from "../redis/connect.js";
import { registryKeys } from "./keys.js";

/** The field with the number of the whole wish. A model has a field of its name. */
const NUMBER = "";

const modelWish = z.object({
  isLoaded: z.boolean(),
  /** A ModelConfig as JSON, in place of the model's config.pbtxt. Absent: the model's own. */
  config: z.string().optional(),
});

export type ModelWish = Readonly<z.infer<typeof modelWish>>;

export interface Wish {
  /** Grows with each change; 0 if no client has wished anything. */
  readonly number: number;
  readonly models: ReadonlyMap<string, ModelWish>;
}

export async function readWish(redis: RedisClient): Promise<Wish> {
  const { [NUMBER]: number = "0", ...models } = await redis.hgetall(registryKeys.wish);
  return {
    number: Number(number),
    models: new Map(Object.entries(models).map(([model, text]) => [model, wishIn(text)])),
  };
}

/** `<number> <JSON>`: the number of the change, and the wish for a model. */
export function wishText(wish: ModelWish): string {
  return JSON.stringify(wish);
}

function wishIn(text: string): ModelWish {
  return modelWish.parse(JSON.parse(text.slice(text.indexOf(" ") + 1)));
}
