import { describe, expect, it } from "vitest";
import { parseRestrictedApis, type Api, type RestrictedApis } from "./restricted-apis.js";

function parsed(text: string): RestrictedApis {
  const restricted = parseRestrictedApis(text);
  if (typeof restricted === "string") throw new Error(restricted);
  return restricted;
}

describe("restricted APIs", () => {
  it("have Triton's form, in several groups", () => {
    const restricted = parsed("model-repository, logging:Admin-Key=a:b=c;inference:other.key=v2");
    const isOpen = (api: Api, headers: object) => restricted.refusal(api, { ...headers }) === undefined;
    expect(isOpen("logging", { "admin-key": "a:b=c" })).toBe(true);
    expect(isOpen("model-repository", { "admin-key": "a:b=c" })).toBe(true);
    expect(isOpen("inference", { "admin-key": "a:b=c" })).toBe(false);
    expect(isOpen("inference", { "other.key": "v2" })).toBe(true);
    expect(isOpen("inference", { "other.key": ["v2"] })).toBe(false);
    expect(isOpen("health", {})).toBe(true);
    expect(isOpen("none", {})).toBe(true);
  });

  it("are refused in the words of each protocol", () => {
    const restricted = parsed("trace:Key=v");
    expect(() => restricted.check("trace", {})).toThrow("This API is restricted, expecting header 'Key'");
    expect(() => restricted.check("trace", { key: "v" }, "grpc")).toThrow(
      "This protocol is restricted, expecting header 'triton-grpc-protocol-Key'",
    );
    expect(() => restricted.check("trace", { "triton-grpc-protocol-key": "v" }, "grpc")).not.toThrow();
  });

  it.each([
    ["", "group 1 is none"],
    ["inference", "group 1 is none"],
    ["inference:hush", "group 1 is none"],
    [":key=hush", "group 1 is none"],
    ["inference:key=hush;", "group 2 is none"],
    ["inference:key=hu;sh", "group 2 is none"],
    ["inference:=hush", "group 1 needs the name of a header"],
    ["inference:a key=hush", "group 1 needs the name of a header"],
    ["inference:key-bin=hush", "group 1 needs the name of a header"],
    ["inference:key=", "group 1 needs a value"],
    ["inference:key=hu\nsh", "group 1 needs a value"],
    ["inference:key=h\u00fcsh", "group 1 needs a value"],
    ["infer:key=hush", "group 1 names an API 'infer' that does not exist: there are health, metadata"],
    ["none:key=hush", "names an API 'none' that does not exist"],
    ["inference,:key=hush", "group 1 names an API that does not exist"],
    ["inference:key=a;hu sh=:b=c", "group 2 names an API that does not exist"],
    ["trace:key=hush;logging,trace:key=hush", "names the API 'trace' twice"],
  ])("refuse %j without a secret in the message", (text, message) => {
    const said = parseRestrictedApis(text);
    expect(said).toContain(message);
    expect(said).not.toMatch(/hush/);
  });
});
