import { describe, expect, it } from "vitest";
import { areHosts, judge, splitList, originsFault, type BrowserRequest, type BrowserRules } from "./browsers.js";

const usual: BrowserRules = { hosts: [], origins: ["loopback"] };
const nothing: BrowserRequest = { authority: undefined, origin: undefined, site: undefined, acts: true };
const said = (asked: Partial<BrowserRequest>, rules = usual) => judge(rules, { ...nothing, ...asked }).said;

describe("a host", () => {
  it.each([
    "localhost",
    "localhost:8000",
    "LOCALHOST.:8000",
    "baton.localhost",
    "127.0.0.1:8000",
    "127.9.9.9",
    "192.168.1.7:8000",
    "[::1]:8000",
    "[2001:db8::1]",
    "gateway",
    "baton-gateway:8000",
    "gateway.models.svc",
    "gateway.models.svc.cluster.local:8000",
    "host.docker.internal:8000",
    "printer.local",
    "gateway.home.arpa:8000",
    "gateway.lan",
  ])("that no page can have is allowed: %s", (authority) => {
    expect(said({ authority })).toBe("allowed");
  });

  it.each([
    "evil.example",
    "evil.example:8000",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "a.prod",
    "1.2.3",
    "gateway.models",
    "lan.example",
  ])("that anybody may register is refused, and the setting named: %s", (authority) => {
    expect(judge(usual, { ...nothing, authority, acts: false })).toEqual({
      said: "refused",
      message: `host '${authority.replace(":8000", "")}' is not allowed; BATON_ALLOWED_HOSTS names the hosts that are`,
      event: "host_refused",
      text: authority.replace(":8000", ""),
    });
  });

  it.each(["", "a b", "user@localhost", "localhost:x", "localhost:8000:9", "[::1", "h/..", "h,evil.example", "[x]"])(
    "that is none is called so: '%s'",
    (authority) => {
      expect(said({ authority })).toBe("malformed");
    },
  );

  it.each([
    ["api.example.com", "api.example.com:8000", "allowed"],
    ["api.example.com", "API.Example.com", "allowed"],
    ["api.example.com", "other.example.com", "refused"],
    [".example.com", "other.example.com", "allowed"],
    [".example.com", "a.b.example.com", "allowed"],
    [".example.com", "example.com", "allowed"],
    [".example.com", "evilexample.com", "refused"],
    [".example.com, api.example.org", "api.example.org", "allowed"],
    ["*", "evil.example", "allowed"],
  ])("beside '%s' on the list: %s is %s", (hosts, authority, verdict) => {
    expect(said({ authority }, { ...usual, hosts: splitList(hosts) })).toBe(verdict);
  });
});

describe("a request of", () => {
  const rules = { hosts: [".example.com"], origins: splitList("loopback, https://App.example.org") };
  const authority = "api.example.com";

  it.each<[string, Partial<BrowserRequest>, string, string]>([
    ["no page", {}, "allowed", "allowed"],
    ["the address bar", { site: "none" }, "allowed", "allowed"],
    ["its own page", { origin: "http://api.example.com" }, "allowed", "allowed"],
    ["its own page, through TLS", { origin: "https://api.example.com" }, "allowed", "allowed"],
    [
      "its own page, by a port said",
      { authority: "api.example.com:443", origin: "https://api.example.com" },
      "allowed",
      "allowed",
    ],
    [
      "its own page, behind a proxy",
      { authority: "gateway", origin: "https://a.example", site: "same-origin" },
      "allowed",
      "allowed",
    ],
    [
      "its own page, on loopback",
      { authority: "127.0.0.1:8000", origin: "http://127.0.0.1:8000" },
      "allowed",
      "allowed",
    ],
    ["another port's page", { origin: "http://api.example.com:8001" }, "refused", "refused"],
    ["a page of the same site", { origin: "https://www.example.com", site: "same-site" }, "refused", "refused"],
    ["a page of the same site that says no more", { site: "same-site" }, "allowed", "refused"],
    ["another site's page", { origin: "https://evil.example", site: "cross-site" }, "refused", "refused"],
    ["another site's page, in an old browser", { origin: "https://evil.example" }, "refused", "refused"],
    ["another site's page that says no more", { site: "cross-site" }, "allowed", "refused"],
    ["a page that hides its origin", { origin: "null", site: "cross-site" }, "refused", "refused"],
    ["a page of this machine", { origin: "http://localhost:3000", site: "cross-site" }, "shared", "shared"],
    ["a page of this machine's address", { origin: "http://127.0.0.1:3000" }, "shared", "shared"],
    ["a page of this machine's other address", { origin: "http://[::1]:3000" }, "shared", "shared"],
    ["a page that has a name like this machine's", { origin: "http://localhost.evil.example" }, "refused", "refused"],
    [
      "a page that has an address like this machine's",
      { origin: "http://127.0.0.1.evil.example" },
      "refused",
      "refused",
    ],
    ["a page on the list", { origin: "https://app.example.org", site: "cross-site" }, "shared", "shared"],
    ["a page on the list, without TLS", { origin: "http://app.example.org" }, "refused", "refused"],
  ])("%s: %o is %s to read, %s to act", (_, asked, reading, acting) => {
    expect(said({ authority, ...asked, acts: false }, rules)).toBe(reading);
    expect(said({ authority, ...asked, acts: true }, rules)).toBe(acting);
  });

  it("any page but one that hides its origin is shared, where all are allowed", () => {
    const all = { ...rules, origins: ["*"] };
    expect(said({ authority, origin: "https://evil.example" }, all)).toBe("shared");
    expect(said({ authority, origin: "null" }, all)).toBe("refused");
  });

  it("an application with a scheme of its own is shared, where it is on the list", () => {
    const apps = { ...rules, origins: splitList("tauri://localhost, chrome-extension://abcdefgh") };
    expect(said({ authority, origin: "tauri://localhost" }, apps)).toBe("shared");
    expect(said({ authority, origin: "chrome-extension://abcdefgh" }, apps)).toBe("shared");
    expect(said({ authority, origin: "chrome-extension://other" }, apps)).toBe("refused");
    expect(said({ authority, origin: "tauri://localhost" }, rules)).toBe("refused");
  });

  it("no page is shared, where none is allowed", () => {
    const none = { ...rules, origins: ["none"] };
    for (const origin of ["http://localhost:3000", "https://evil.example", "none", "null"]) {
      expect(said({ authority, origin }, none)).toBe("refused");
    }
    expect(said({ authority }, none)).toBe("allowed");
  });
});

describe("the settings", () => {
  it("are lists of names, and of origins", () => {
    expect(["", "*", "a.example, .b.example", "GPU-1.example"].map(areHosts)).toEqual([true, true, true, true]);
    expect(["https://a.example", "a.example:8000", "*.a.example", "a b"].map(areHosts)).toEqual([
      false,
      false,
      false,
      false,
    ]);
  });

  it.each([
    "loopback",
    "*",
    "none",
    "",
    "https://a.example, http://b.example:3000",
    "https://App.example, http://[::1]:3000, http://10.0.0.1",
    "tauri://localhost, chrome-extension://abcdefgh, vscode-webview://x, capacitor://localhost",
  ])("take origins as browsers write them: '%s'", (text) => {
    expect(originsFault(text)).toBeUndefined();
  });

  it.each(["a.example", "https://a.example/", "https://*.a.example", "null", "tauri://", "x://a/b", "http://a:b"])(
    "refuse what is no origin, by name: %s",
    (entry) => {
      expect(originsFault(`loopback, ${entry}`)).toBe(
        `'${entry}' is no origin such as https://app.example.com, nor \`loopback\`, \`*\` or \`none\``,
      );
    },
  );

  it.each([
    ["https://app.example.com:443", "https://app.example.com"],
    ["http://app.example.com:80", "http://app.example.com"],
    ["https://münchen.example", "https://xn--mnchen-3ya.example"],
    ["http://[0:0::1]:3000", "http://[::1]:3000"],
  ])("say how browsers write %s", (entry, origin) => {
    expect(originsFault(entry)).toBe(`'${entry}' is an origin that browsers write '${origin}'; write it so`);
  });

  it("leave `none` alone", () => {
    expect(originsFault("none, https://a.example")).toBe("`none` stands alone");
  });
});
