import { expect, it } from "vitest";
import { anyOwner } from "../auth/owner/owner.js";
import { Caller } from "./caller.js";
import { ProcessSettings } from "./process-settings.js";

it("settings are shown to nobody whom a proxy calls a tenant", () => {
  const settings = [{ name: "A", value: "1", default: null, given: true }];
  const connections = () => ({ redis: true, nats: false });
  const behind = new ProcessSettings({ settings, connections, hasTenantHeader: true });
  expect(behind.show(Caller.nobody)).toEqual({ settings, connections: { redis: true, nats: false } });
  expect(() => behind.show(Caller.of(anyOwner("acme")))).toThrow(
    expect.objectContaining({ code: "forbidden" }) as Error,
  );
  const alone = new ProcessSettings({ settings, connections, hasTenantHeader: false });
  expect(alone.show(Caller.of(anyOwner("default")))).toMatchObject({ settings });
});
