/** Keys expire by Redis's clock, however wrong the clocks of gateways are. */
import { expect, it } from "vitest";
import { useKeyedFleet } from "./keyed.js";

const HOUR_MS = 3_600_000;
/** Moves the clock of a gateway by an hour: of the first ahead, of the second back. */
const shifted = (member: string): string[] => {
  const byMs = member === "gateway-1" ? HOUR_MS : -HOUR_MS;
  return ["--import", `data:text/javascript,const now=Date.now;Date.now=()=>now()+(${byMs});`];
};
const keys = useKeyedFleet({
  gateways: 2,
  workers: 0,
  models: [],
  direct: true,
  flags: (member) => (member.startsWith("gateway") ? shifted(member) : []),
});
const { served } = keys;

it("a key expires on every gateway when Redis says so", async () => {
  const said = (text: string): Promise<string[]> =>
    Promise.all(
      served.fleet.urls.map(async (url) => {
        const answer = await fetch(`${url}/v2/jobs`, { headers: { "api-key": text } });
        return ((await answer.json()) as { code?: string }).code ?? String(answer.status);
      }),
    );
  const { text: longer } = await keys.make({ livesMs: HOUR_MS / 2 });
  const { id, text } = await keys.make({ livesMs: 5_000 });
  expect(await said(longer)).toEqual(["200", "200"]);
  await expect.poll(() => said(text)).toEqual(["expired_api_key", "expired_api_key"]);
  const { expiresAt } = await keys.keys.find(id);
  expect(await keys.keys.now()).toBeGreaterThanOrEqual(expiresAt ?? Infinity);
  expect(await said(longer)).toEqual(["200", "200"]);
});
