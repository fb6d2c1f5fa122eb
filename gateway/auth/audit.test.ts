import { describe, expect, it } from "vitest";
import { Audit, type AuditDetails } from "./audit.js";

const key = "bt_0123456789ab_BatonTestVector0000000000000000x41OopR";

/** The lines of an audit, without their times. */
function lines(act: (audit: Audit) => void): Record<string, unknown>[] {
  const written: string[] = [];
  const audit = new Audit("gw-1", (text) => written.push(text));
  act(audit);
  audit.flush();
  return written
    .join("")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const { time, ...rest } = JSON.parse(line) as Record<string, unknown>;
      expect(time).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
      return rest;
    });
}
const one = (details: AuditDetails) => lines((audit) => audit.note("auth_failed", details))[0] ?? {};

describe("the audit", () => {
  it("writes a line of JSON for an event", () => {
    expect(lines((audit) => audit.note("key_created", { key_id: "k", tenant: "acme", actor: "keys" }))).toEqual([
      { audit: true, event: "key_created", key_id: "k", tenant: "acme", actor: "keys", process: "gw-1", count: 1 },
    ]);
  });

  it("counts repetitions of the same event, key or address, and reason", () => {
    const failed = (audit: Audit, reason: string, address: string, more: AuditDetails = {}) =>
      audit.note("auth_failed", { reason, address, ...more });
    const counted = lines((audit) => {
      for (let i = 0; i < 3; i++) failed(audit, "unknown", "10.0.0.1", { path: `/${i}` });
      failed(audit, "malformed", "10.0.0.1");
      failed(audit, "unknown", "10.0.0.2");
      for (const address of ["10.0.0.1", "10.0.0.2"]) failed(audit, "secret", address, { key_id: "k" });
    });
    expect(counted.map(({ reason, address, path, count }) => [reason, address, path, count])).toEqual([
      ["unknown", "10.0.0.1", "/0", 3],
      ["malformed", "10.0.0.1", undefined, 1],
      ["unknown", "10.0.0.2", undefined, 1],
      ["secret", "10.0.0.1", undefined, 2],
    ]);
  });

  it("counts hosts that clients make up by the address alone", () => {
    const counted = lines((audit) => {
      for (let i = 0; i < 5; i++) audit.note("host_refused", { reason: `${i}.evil.example`, address: "10.0.0.1" });
    });
    expect(counted.map(({ reason, count }) => [reason, count])).toEqual([["0.evil.example", 5]]);
  });

  it("hides no act of an administrator behind refusals", () => {
    const counted = lines((audit) => {
      for (let i = 0; i < 1_000; i++) audit.note("auth_failed", { reason: "unknown", address: `a${i}` });
      audit.note("key_created", { key_id: "k", tenant: "acme", actor: "a" });
    });
    expect(counted.at(-1)).toMatchObject({ event: "key_created", key_id: "k", tenant: "acme", actor: "a" });
  });

  it("has few lines also for 100,000 addresses, and loses none of them", () => {
    const counted = lines((audit) => {
      for (let i = 0; i < 100_000; i++)
        audit.note("auth_failed", { reason: i % 2 ? "unknown" : "malformed", address: `a${i}` });
    });
    expect(counted.length).toBeLessThanOrEqual(210);
    expect(counted.reduce((sum, { count }) => sum + Number(count), 0)).toBe(100_000);
    const others = counted.filter(({ address }) => address === undefined);
    expect(new Set(others.map(({ reason }) => reason))).toEqual(new Set(["malformed", "unknown"]));
  });

  it.each([
    `/v2/keys/${key}`,
    `/v2/keys/${key.replaceAll("_", "%5F")}`,
    `/${"a".repeat(240)}/${key}`,
    "/v2/eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.c2ln",
    "/x?tk_abcdef.0123456789",
  ])("never has a secret that a client put into a text: %s", (path) => {
    const said = String(one({ path })["path"]);
    for (const secret of [/BatonTest/, /x41OopR/, /eyJzdWIi/, /abcdef/]) expect(said).not.toMatch(secret);
    expect(said.length).toBeLessThanOrEqual(256);
  });

  it("keeps a line whole, whatever a client sends", () => {
    const path = '/"\n\r\u0085\u2028\u007f\ud800é';
    expect(one({ path })["path"]).toBe(path);
    const written: string[] = [];
    const audit = new Audit("gw-1", (text) => written.push(text));
    audit.note("auth_failed", { path, request_id: "x".repeat(300) });
    audit.flush();
    expect(written.join("")).toMatch(/^[\x20-\x7e]+\n$/);
  });
});
