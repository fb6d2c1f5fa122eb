/** The health and the settings of the gateway that has served the page. */
import type { Settings } from "../../../gateway/answers.js";
import { ask, read } from "../../client/ask.js";
import { Refusal } from "../../client/refusal.js";

/** @throws Refusal or Away */
export async function readReady(signal: AbortSignal): Promise<boolean> {
  const answer = await unlessRefused(400, () => ask("/v2/health/ready", { signal }));
  return answer !== null;
}

/**
 * @returns null if the key may not see the settings
 * @throws Refusal or Away
 */
export function readSettings(signal: AbortSignal): Promise<Settings | null> {
  return unlessRefused(403, () => read<Settings>("/v2/settings", { signal }));
}

/** @returns null if the gateway has refused the request with this status */
async function unlessRefused<Answer>(status: number, work: () => Promise<Answer>): Promise<Answer | null> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refusal && error.status === status) return null;
    throw error;
  }
}
