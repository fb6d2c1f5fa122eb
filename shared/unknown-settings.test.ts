import { describe, expect, it } from "vitest";
import { otherNames, settingNames } from "./setting-names.js";
import { describeUnknown, unknownSettings } from "./unknown-settings.js";

const nearestTo = (name: string): string | undefined => unknownSettings({ [name]: "200" })[0]?.nearest;

describe("a variable that no process reads", () => {
  it.each([
    ["BATON_QUEUE_ITEMS", "BATON_QUEUE_LIMIT"],
    ["BATON_QUEUE_LIMITS", "BATON_QUEUE_LIMIT"],
    ["BATON_QUEUELIMIT", "BATON_QUEUE_LIMIT"],
    ["BATON_QUEUE", "BATON_QUEUE_LIMIT"],
    ["BATON_QUEUE_BYTE", "BATON_QUEUE_BYTES"],
    ["BATON_TOTAL_QUEUE_BYTS", "BATON_TOTAL_QUEUE_BYTES"],
    ["BATON_LEASE", "BATON_LEASE_MS"],
    ["BATON_LEASE_SECONDS", "BATON_LEASE_MS"],
    ["BATON_WORKER", "BATON_WORKERS"],
    ["BATON_http_port", "BATON_HTTP_PORT"],
    ["BATON_STRICT", "BATON_STRICT_SETTINGS"],
    ["BATON_MODEL_REPO", "BATON_MODEL_REPOSITORY"],
  ])("%s is nearest to %s", (name, nearest) => {
    expect(nearestTo(name)).toBe(nearest);
  });

  it("has a nearest name however long it is", () => {
    expect(nearestTo(`BATON_${"QUEUE_".repeat(10_000)}`)).toBeDefined();
  });

  it("is named without its value, in one line with all others", () => {
    const unknown = unknownSettings({ BATON_QUEUE_ITEMS: "secret", BATON_LEASE: "secret", PATH: "/bin" });
    expect(describeUnknown(unknown)).toBe(
      "no process of Baton reads BATON_QUEUE_ITEMS (did you mean BATON_QUEUE_LIMIT?), BATON_LEASE (did you mean BATON_LEASE_MS?)",
    );
  });
});

describe("no fault", () => {
  it("is a setting of any process, one of a test, and what is empty", () => {
    const env = Object.fromEntries([...settingNames, ...otherNames].map((name) => [name, "1"]));
    expect(unknownSettings({ ...env, BATON_QUEUE_ITEMS: "" })).toEqual([]);
    expect(describeUnknown([])).toBeUndefined();
  });

  it.each([
    ["baton-gateway", "BATON_GATEWAY"],
    ["baton", "BATON"],
  ])("is what Kubernetes sets for a Service %s", (_, service) => {
    const link = {
      [`${service}_SERVICE_HOST`]: "10.0.0.1",
      [`${service}_SERVICE_PORT`]: "8000",
      [`${service}_SERVICE_PORT_HTTP`]: "8000",
      [`${service}_PORT`]: "tcp://10.0.0.1:8000",
      [`${service}_PORT_8000_TCP`]: "tcp://[fd00::1]:8000",
      [`${service}_PORT_8000_TCP_PROTO`]: "tcp",
      [`${service}_PORT_8000_TCP_PORT`]: "8000",
      [`${service}_PORT_8000_TCP_ADDR`]: "fd00::1",
    };
    expect(unknownSettings(link)).toEqual([]);
  });

  it.each([
    ["BATON_GATEWAY_PORT", "8000"],
    ["BATON_REDIS_SERVICE_HOST", "redis"],
    ["BATON_NATS_SERVICE_PORT", "nats:4222"],
  ])("does not cover %s=%s, which Kubernetes would not set", (name, value) => {
    expect(unknownSettings({ [name]: value })).toHaveLength(1);
  });
});
