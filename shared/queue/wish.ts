/**
 * The fleet's wish: the models that clients have asked workers to load or to unload, one hash for
 * the whole deployment. Gateways change the wish (`admission/note-wish.lua`), and note whether
 * workers could fulfil it (`admission/settle-wish.lua`). A worker reads the wish before it loads
 * its models, and learns of a change from its heartbeat.
 */
import { z } from "zod";
import type { RedisClient } from "../redis/connect.js";
import { registryKeys } from "./keys.js";

/**
 * The field with the number of the whole wish. A model has a field of its name, and another with
 * this before its name: the last wish that workers have fulfilled. No name of a model has a slash.
 */
const NUMBER = "";
const FULFILLED = "/";

const modelWish = z.object({
  isLoaded: z.boolean(),
  /** A ModelConfig as JSON, in place of the model's config.pbtxt. Absent: the model's own. */
  config: z.string().optional(),
});

export type ModelWish = Readonly<z.infer<typeof modelWish>>;

/** The number of the change that made it stays if a later wish is taken back in its favour. */
export type NumberedWish = ModelWish & { readonly number: number };

export interface Wish {
  /** Grows with each change; 0 if no client has wished anything. */
  readonly number: number;
  readonly models: ReadonlyMap<string, NumberedWish>;
}

export async function readWish(redis: RedisClient): Promise<Wish> {
  const { [NUMBER]: number = "0", ...fields } = await redis.hgetall(registryKeys.wish);
  const models = Object.entries(fields).filter(([field]) => !field.startsWith(FULFILLED));
  return { number: Number(number), models: new Map(models.map(([model, text]) => [model, wishIn(text)])) };
}

/**
 * Whether a model may have this name. It is the name of a folder, and a look at a repository passes
 * over hidden ones.
 */
export function isModelName(name: string): boolean {
  return /^[^./\0][^/\0]*$/.test(name) && Buffer.byteLength(name) <= 255;
}

/** In its field it stands behind the number of the change, and the wish's id. */
export function wishText(wish: ModelWish): string {
  return JSON.stringify(wish);
}

function wishIn(text: string): NumberedWish {
  const wish = modelWish.parse(JSON.parse(text.slice(text.indexOf("{"))));
  return { ...wish, number: Number.parseInt(text) };
}
