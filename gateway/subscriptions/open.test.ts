import { describe, expect, it } from "vitest";
import { publishesLabels } from "./open.js";

const BATON_NATS_SIGNING_SEED = "SA…";
const BATON_NATS_CREDS = "/keys/baton.creds";

describe("streams are published for each label", () => {
  it.each([
    ["gateway", { BATON_NATS_SIGNING_SEED, BATON_NATS_CREDS }, true],
    ["gateway", { BATON_NATS_CREDS }, false],
    ["gateway", {}, false],
    ["jobs", { BATON_NATS_SIGNING_SEED, BATON_NATS_CREDS }, true],
    ["jobs", { BATON_NATS_CREDS }, true],
    ["jobs", {}, false],
  ] as const)("of what a %s process with %j takes in: %s", (kind, config, does) => {
    expect(publishesLabels(kind, config)).toBe(does);
  });
});
