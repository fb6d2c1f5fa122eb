import { describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";

describe("generations whose deadline passes at once", () => {
  const served = useFleet({ models: ["gen-cheap"] });

  async function generate(parameters: Readonly<Record<string, unknown>>): Promise<number> {
    const answer = await fetch(`${served.url}/v2/models/gen-cheap/generate`, {
      method: "POST",
      body: JSON.stringify({ text_input: "the", max_tokens: 5, ...parameters }),
      signal: AbortSignal.timeout(10_000),
    });
    await answer.arrayBuffer();
    return answer.status;
  }

  it("expire, and the worker goes on with the next one", async () => {
    for (const timeout of [1, 1_000, 2_000, 3_000, 5_000]) {
      const status = await generate({ timeout });
      expect([200, 503]).toContain(status);
    }
    // A prompt of this length takes longer to read than its deadline, on any machine.
    expect(await generate({ timeout: 1, text_input: "the ".repeat(10_000) })).toBe(503);
    expect(await generate({})).toBe(200);
  });
});
