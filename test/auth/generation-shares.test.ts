/** The weight of a tenant's record is its share of the tokens of a generator. */
import { describe, expect, it } from "vitest";
import { Backlog } from "../edition/policies/backlog.js";
import { buckets } from "../edition/settings.js";
import { ask } from "../jobs/ask.js";
import { readUntil } from "../support/until.js";
import { useKeyedFleet, type Key } from "./keyed.js";

const SLOTS = 4;
/** The most requests in the ready stream of the only bucket (`readyWindow`). */
const READY = 12;

/** The lengths of a tenant's prompts and answers, in tokens. */
interface Lengths {
  readonly prompt: number;
  readonly answer: number;
}

const fleet = useKeyedFleet({
  models: ["gen-cheap"],
  env: { ...buckets(1), BATON_GENERATOR_SLOTS: String(SLOTS), BATON_PREFILL_TOKENS: "64" },
  direct: true,
});
const { served, make, setTenant } = fleet;

/** Begins generations of a tenant, whose outcomes are to be fetched. @returns their ids */
function admitted({ headers }: Key, count: number, { prompt, answer }: Lengths): Promise<string[]> {
  const tokens = Array.from({ length: prompt }, (_, i) => 10 + (i % 300));
  const body = { model: "gen-cheap", prompt: tokens, max_tokens: answer, ignore_eos: true, temperature: 0 };
  const asked = { body, headers: { ...headers, prefer: "respond-async" } };
  const admit = async () => (await ask(`${served.url}/v1/completions`, asked)).body.id;
  return Promise.all(Array.from({ length: count }, admit));
}

/**
 * When a generation ended, by the clock of Redis. Clients hear of the ends of several generations
 * in any order.
 */
async function endOf(id: string, { headers }: Key): Promise<number> {
  const read = async () => (await ask(`${served.url}/v2/requests/${id}`, { headers })).body;
  const { state, ended_at: end } = await readUntil(read, ({ ended_at: at }) => typeof at === "string");
  expect(state).toBe("completed");
  return Date.parse(end ?? "");
}

describe("tenants of weights 1 and 3", () => {
  it.each([
    ["of which the lighter has long answers", { prompt: 8, answer: 72 }, { prompt: 8, answer: 12 }],
    ["of which the heavier has long answers", { prompt: 8, answer: 12 }, { prompt: 8, answer: 72 }],
    ["of which the lighter has long prompts", { prompt: 72, answer: 8 }, { prompt: 8, answer: 12 }],
  ])("%s get their shares of the tokens within 20 %", { timeout: 180_000 }, async (_, light, heavy) => {
    const [first, lights, heavies] = [await make(), await make({ tenant: "light" }), await make({ tenant: "heavy" })];
    await setTenant("light", { weight: 1 });
    await setTenant("heavy", { weight: 3 });
    const lengthOf = ({ prompt, answer }: Lengths) => prompt + answer;
    const wanted = 24 * Math.max(lengthOf(light), lengthOf(heavy));
    const backlog = new Backlog(served);
    await backlog.freeze();
    await admitted(first, READY, { prompt: 4, answer: 4 });
    // The tenant with the smaller share asks first. Neither backlog ends too early.
    const lightIds = await admitted(lights, Math.ceil(wanted / lengthOf(light)), light);
    const heavyIds = await admitted(heavies, Math.ceil((2 * wanted) / lengthOf(heavy)), heavy);
    await backlog.run();
    const ends: { readonly name: "light" | "heavy"; readonly tokens: number; readonly end: number }[] = [];
    for (const id of lightIds) ends.push({ name: "light", tokens: lengthOf(light), end: await endOf(id, lights) });
    for (const id of heavyIds) ends.push({ name: "heavy", tokens: lengthOf(heavy), end: await endOf(id, heavies) });
    const tokens = { light: 0, heavy: 0 };
    for (const one of ends.sort((a, b) => a.end - b.end)) {
      tokens[one.name] += one.tokens;
      if (tokens.heavy >= 1.5 * wanted) break;
    }
    const share = (3 * tokens.light) / tokens.heavy;
    expect(Math.abs(share - 1)).toBeLessThan(0.2);
  });
});
