import { describe, expect, it } from "vitest";
import { readCommand } from "./command.js";
import { usualScopes } from "../owner/scopes.js";

const read = (line: string) => readCommand(line.split(" ").filter((word) => word !== ""));

describe("the command line of keys", () => {
  it("makes a key", () => {
    expect(read("create --tenant acme")).toEqual({
      verb: "create",
      tenant: "acme",
      limits: {},
      name: "",
      scopes: usualScopes,
      models: ["*"],
      livesMs: undefined,
      file: undefined,
      json: false,
    });
    const all =
      "create --tenant acme --name ci --scopes infer,read --models tale-*,!tale-x --expires 30d --rps 0.5 --burst 2 --tpm 60000 --streams 8 --readers 4 --json";
    expect(read(all)).toEqual({
      verb: "create",
      tenant: "acme",
      limits: {
        requests_per_second: 0.5,
        burst: 2,
        tokens_per_minute: 60_000,
        concurrent_streams: 8,
        open_readers: 4,
      },
      name: "ci",
      scopes: ["infer", "read"],
      models: ["tale-*", "!tale-x"],
      livesMs: 30 * 86_400_000,
      file: undefined,
      json: true,
    });
    expect(read("create --tenant acme --file keys.json")).toMatchObject({ file: "keys.json" });
  });

  it("lists, shows, rotates and revokes keys", () => {
    expect(read("list")).toEqual({ verb: "list", tenant: undefined, json: false });
    expect(read("list --tenant acme --json")).toEqual({ verb: "list", tenant: "acme", json: true });
    expect(read("show k")).toEqual({ verb: "show", id: "k" });
    expect(read("rotate k")).toEqual({ verb: "rotate", id: "k", overlapMs: 0, json: false });
    expect(read("rotate k --overlap 12h")).toMatchObject({ overlapMs: 43_200_000 });
    expect(read("revoke k")).toEqual({ verb: "revoke", id: "k" });
    expect(read("first")).toEqual({ verb: "first" });
  });

  it("makes the users of Redis", () => {
    expect(read("acl")).toEqual({ verb: "acl", passwords: undefined, file: undefined });
    const asked = { passwords: "/keys/*/redis.pass", file: "users.acl" };
    expect(read("acl --passwords /keys/*/redis.pass --file users.acl")).toEqual({ verb: "acl", ...asked });
  });

  it.each([
    ["", "name a command"],
    ["make", "there is no command 'make'"],
    ["create", "--tenant is missing"],
    ["create --tenant a:b", "a tenant is 1 to 64"],
    ["create --tenant a --scopes infer,all", "there is no scope 'all': there are infer, read"],
    ["create --tenant a --models a/b", "--models: 'a/b' is no glob"],
    ["create --tenant a --expires 30", "--expires is a duration"],
    ["create --tenant a --burst 3", "--rps, --burst, --tpm, --streams, --readers: burst needs requests_per_second"],
    ["create --tenant a --rps many", "--rps, --burst, --tpm, --streams, --readers: requests_per_second: "],
    ["create --tenant a b", "'b' is too much"],
    ["create --tenant a --limit 3", "--limit"],
    ["show", "name the id of a key"],
    ["show a b", "'b' is too much"],
    ["acl --passwords redis.pass", "--passwords needs a star"],
    ["rotate a --overlap 31d", "--overlap is at most 30d"],
  ])("does not take '%s'", (line, text) => {
    expect(() => read(line)).toThrow(text);
  });
});
