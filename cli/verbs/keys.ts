/**
 * `keys …`: makes, lists, rotates and revokes API keys. Standard output has a new key alone, so a
 * script can keep the key; the rest goes to standard error.
 */
import type { Command } from "commander";
import { printJson } from "#shared/json/print.js";
import type { ApiKey, NewApiKey } from "../../gateway/answers.js";
import { segment } from "../client/address.js";
import { readAnswer, readPages } from "../client/answers.js";
import { jsonOf } from "../client/gateway.js";
import { exitCodes, Failure } from "../terminal/exit.js";
import { cells, memberTexts, pairs, shown, table } from "../terminal/text.js";
import { duration, durationOrTime } from "./duration.js";
import type { OpenSession, Session } from "./session.js";

interface CreateOptions {
  readonly tenant?: string;
  readonly name?: string;
  readonly scopes?: readonly string[];
  readonly models?: readonly string[];
  readonly expires?: number | string;
  readonly rps?: number;
  readonly burst?: number;
  readonly tpm?: number;
  readonly streams?: number;
  readonly readers?: number;
}

interface ListOptions {
  readonly tenant?: string;
  readonly state?: string;
}

const PAGE = 100;

export function addKeys(program: Command, open: OpenSession): void {
  const keys = program.command("keys").description("make, look at, rotate and revoke API keys");

  keys
    .command("create")
    .description("make a key, and print it: nobody can read it again")
    .option("--tenant <tenant>", "whose it is; else the tenant of the key that asks")
    .option("--name <name>", "by which people know it")
    .option("--scopes <scopes>", "what it may do, such as infer,read", listed)
    .option("--models <globs>", "the models that it may use, such as tale-*,!tale-x", listed)
    .option("--expires <duration>", "how long it is good, such as 30d, or until which time", durationOrTime)
    .option("--rps <number>", "how many requests a second it may send", Number)
    .option("--burst <number>", "how many of them at once", Number)
    .option("--tpm <number>", "how many tokens a minute its generations may use", Number)
    .option("--streams <number>", "how many generations it may have at a time", Number)
    .option("--readers <number>", "how many streams and WebSockets it may have open at a gateway", Number)
    .action(async ({ expires, rps, burst, tpm, streams, readers, ...terms }: CreateOptions, command: Command) => {
      const expiresAt = typeof expires === "number" ? new Date(Date.now() + expires).toISOString() : expires;
      const counted = { concurrent_streams: streams, open_readers: readers };
      const limits = { requests_per_second: rps, burst, tokens_per_minute: tpm, ...counted };
      const given = Object.values(limits).some((limit) => limit !== undefined) ? { limits } : {};
      await printKey(open(command), "/v2/keys", printJson({ ...terms, ...given, expires_at: expiresAt }));
    });

  keys
    .command("list")
    .description("list keys, the newest first")
    .option("--tenant <tenant>", "only those of this tenant")
    .option("--state <state>", "only those that are active, expired or revoked")
    .action(async (filters: ListOptions, command: Command) => {
      const { gateway, terminal } = open(command);
      const query = new URLSearchParams({ limit: String(PAGE), ...filters });
      const found = await readPages<ApiKey>(gateway, "/v2/keys", query);
      if (terminal.json) terminal.document(printJson({ object: "list", data: found }));
      else terminal.print(listLines(found), { heading: true });
    });

  keys
    .command("show")
    .description("show one key, without its secret")
    .argument("<id>")
    .action(async (id: string, _: object, command: Command) => {
      const session = open(command);
      show(session, jsonOf(await session.gateway.get(pathOf(id)), session.gateway));
    });

  keys
    .command("rotate")
    .description("make a key in place of one, with the same rights, and print it")
    .argument("<id>")
    .option("--overlap <duration>", "how long the former key is still good, such as 1d; else it ends now", duration)
    .action(async (id: string, { overlap = 0 }: { readonly overlap?: number }, command: Command) => {
      await printKey(open(command), pathOf(id, "/rotate"), printJson({ overlap }));
    });

  keys
    .command("revoke")
    .description("revoke one key, and show it")
    .argument("<id>")
    .action(async (id: string, _: object, command: Command) => {
      const session = open(command);
      show(session, jsonOf(await session.gateway.change(pathOf(id), { method: "DELETE" }), session.gateway));
    });
}

async function printKey({ gateway, terminal }: Session, path: string, body: string): Promise<void> {
  const headers = { "content-type": "application/json" };
  const view = jsonOf(await gateway.change(path, { method: "POST", headers, body }), gateway);
  if (terminal.json) {
    terminal.document(view);
    return;
  }
  const { key, id, tenant, scopes } = readAnswer<NewApiKey>(view);
  if (key === undefined) throw new Failure(exitCodes.unreachable, "the gateway's answer has no key");
  terminal.print([key]);
  terminal.note(`key ${shown(id)} of ${shown(tenant)}, with ${shown(scopes)}; nobody can read it again`);
}

function show({ terminal }: Session, text: string): void {
  if (terminal.json) terminal.document(text);
  else terminal.print(pairs(memberTexts(readAnswer<ApiKey>(text), ["object", "limits"])));
}

function listLines(keys: readonly Partial<ApiKey>[]): string[] {
  const rows = keys.map((one) => cells(one, ["id", "tenant", "state", "last4", "expires_at", "name"]));
  return table(["KEY", "TENANT", "STATE", "ENDS IN", "EXPIRES", "NAME"], rows);
}

function listed(text: string): string[] {
  return text.split(",").map((entry) => entry.trim());
}

function pathOf(id: string, rest = ""): string {
  return `/v2/keys/${segment(id)}${rest}`;
}
