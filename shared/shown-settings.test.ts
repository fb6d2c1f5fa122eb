import { describe, expect, it } from "vitest";
import { z } from "zod";
import { flagSetting } from "./settings.js";
import { showSettings } from "./shown-settings.js";

const schema = z.object({
  BATON_PORT: z.coerce.number().default(8000),
  BATON_FLAG: flagSetting("true"),
  BATON_NAME: z.string().default(""),
  BATON_TOKEN: z.string().optional(),
  BATON_TOKEN_FILE: z.string().optional(),
  BATON_NATS_SIGNING_SEED: z.string().optional(),
  BATON_REDIS_URL: z.string().default("redis://127.0.0.1:6379"),
});
const valuesOf = (env: NodeJS.ProcessEnv) =>
  Object.fromEntries(showSettings(schema, env).map(({ name, value }) => [name, value]));

describe("settings as people see them", () => {
  it("have their usual values if nobody gives them, or gives an empty one", () => {
    const [port, flag, name, token] = showSettings(schema, { BATON_PORT: "", OTHER: "x" });
    expect(port).toEqual({ name: "BATON_PORT", value: "8000", default: "8000", given: false });
    expect(flag).toEqual({ name: "BATON_FLAG", value: "true", default: "true", given: false });
    expect([name?.value, token?.value, token?.default]).toEqual([null, null, null]);
  });

  it("have the values that the environment gives", () => {
    const [port] = showSettings(schema, { BATON_PORT: "1" });
    expect(port).toEqual({ name: "BATON_PORT", value: "1", default: "8000", given: true });
  });

  it("hold no secret", () => {
    const given = { BATON_TOKEN: "hush", BATON_NATS_SIGNING_SEED: "SAhush", BATON_TOKEN_FILE: "/run/token" };
    expect(valuesOf(given)).toMatchObject({
      BATON_TOKEN: "set",
      BATON_NATS_SIGNING_SEED: "set",
      BATON_TOKEN_FILE: "/run/token",
    });
    for (const [url, shown] of [
      ["redis://10.0.0.1:6379", "redis://10.0.0.1:6379"],
      ["redis://user:hush@10.0.0.1:6379", "set"],
      ["redis+sentinel://a:1,b:2/name?sentinel_password=hush", "set"],
      ["/run/redis.sock?password=hush", "set"],
      ["nats://hush@10.0.0.1", "set"],
    ]) {
      expect(valuesOf({ BATON_REDIS_URL: url })["BATON_REDIS_URL"]).toBe(shown);
    }
  });
});
