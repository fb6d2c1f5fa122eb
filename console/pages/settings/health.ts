/** The health and the settings of the gateway that has served the page. */
import type { Settings } from "../../../gateway/answers.js";
import { ask, read } from "../../client/ask.js";
import { Refusal } from "../../client/refusal.js";

export interface Health {
  readonly isReady: boolean;
  /** Undefined if the key may not see the settings. */
  readonly settings: Settings | undefined;
}

/** @throws Refusal or Away */
export async function readHealth(signal: AbortSignal): Promise<Health> {
  const isReady = await unlessRefused(400, async () => {
    await ask("/v2/health/ready", { signal });
    return true;
  });
  const settings = await unlessRefused(403, () => read<Settings>("/v2/settings", { signal }));
  return { isReady: isReady === true, settings };
}

/** @returns undefined if the gateway has refused the request with this status */
async function unlessRefused<Answer>(status: number, work: () => Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refusal && error.status === status) return undefined;
    throw error;
  }
}
