/** `baton keys` makes, lists, shows, rotates and revokes keys, and prints a new key alone. */
import { expect, it } from "vitest";
import { keyId } from "../../gateway/auth/key.js";
import { baton } from "../cli/baton.js";
import { useKeyedFleet } from "./keyed.js";

const keyed = useKeyedFleet({ models: ["echo-int32"], jobs: 1, direct: true });
const { served } = keyed;

it("baton keys does what /v2/keys does", { timeout: 120_000 }, async () => {
  const { text: operator } = await keyed.make({ tenant: "default", scopes: ["infer", "read", "operator"] });
  const ask = (...args: string[]) => baton(["keys", ...args], { url: served.url, env: { BATON_API_KEY: operator } });

  const terms = ["--tenant", "acme", "--name", "ci", "--scopes", "infer,read", "--models", "tale-*,!tale-x"];
  const made = await ask("create", ...terms, "--expires", "30d");
  expect(made.code).toBe(0);
  expect(made.stdout).toMatch(/^bt_\w+\n$/);
  const id = keyId(made.stdout.trim()) ?? "";
  expect(made.stderr).toBe(`baton: key ${id} of acme, with infer read; nobody can read it again\n`);

  const { stdout: json } = await ask("show", id, "--json");
  const view = JSON.parse(json) as { expires_at: string };
  expect(view).toMatchObject({
    id,
    name: "ci",
    tenant: "acme",
    scopes: ["infer", "read"],
    models: ["tale-*", "!tale-x"],
  });
  expect(Date.parse(view.expires_at) - Date.now()).toBeGreaterThan(29 * 86_400_000);
  expect((await ask("show", id)).stdout).toMatch(/^state +active$/m);

  const rotated = await ask("rotate", id, "--overlap", "1d", "--json");
  const newer = JSON.parse(rotated.stdout) as { id: string; key: string };
  expect(newer).toMatchObject({ rotated_from: id, tenant: "acme", key: expect.stringMatching(/^bt_/) as string });
  expect(rotated.stderr).toBe("");

  expect((await ask("revoke", newer.id)).stdout).toMatch(/^state +revoked$/m);
  const lines = (await ask("list", "--tenant", "acme")).stdout.trim().split("\n");
  expect(lines[0]).toMatch(/^KEY +TENANT +STATE +ENDS IN +EXPIRES +NAME$/);
  expect(lines.slice(1).map((line) => line.split(/ +/).slice(0, 3))).toEqual([
    [newer.id, "acme", "revoked"],
    [id, "acme", "active"],
  ]);
  const active = await ask("list", "--tenant", "acme", "--state", "active", "--json");
  expect(JSON.parse(active.stdout)).toMatchObject({ object: "list", data: [{ id }] });

  expect(await ask("show", "0123456789ab")).toMatchObject({ code: 3, stdout: "" });
  const refused = await ask("create", "--scopes", "files");
  expect([refused.code, refused.stdout]).toEqual([4, ""]);
  expect(refused.stderr).toContain("the API key lacks the scope 'files'");
  expect(await ask("create", "--expires", "soon")).toMatchObject({ code: 2, stdout: "" });
});
