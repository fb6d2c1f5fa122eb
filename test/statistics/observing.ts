/** Which gateway of a fleet observes, by the pages of all. */
import { expect } from "vitest";
import { metricsOf, scrape, type Page } from "../metrics/scrape.js";
import type { Gateway } from "../support/fleet/fleet.js";
import { readUntil } from "../support/until.js";

export const pageOf = async ({ member }: Gateway): Promise<Page> => scrape(await metricsOf(member));

export async function observes(gateway: Gateway): Promise<boolean> {
  return (await pageOf(gateway)).types.has("baton_queue_requests");
}

/** The gateway that observes, once there is exactly one. */
export async function observer(gateways: readonly Gateway[]): Promise<Gateway> {
  const found = async () => {
    const all = await Promise.all(gateways.map(async (one) => ((await observes(one)) ? [one] : [])));
    return all.flat();
  };
  const [one] = await readUntil(found, (all) => all.length === 1, { patienceMs: 20_000 });
  return one ?? expect.fail("no gateway observes");
}
