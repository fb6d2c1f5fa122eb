/**
 * Makes the accounts and keys for a deployment's own nats-server: an account for Baton's processes,
 * an account for readers, credentials for each role of a process, and the key with which gateways
 * sign the credentials of subscriptions. Makes them once, and keeps them. Also runs as a program:
 *
 *     node dist/gateway/subscriptions/nats-accounts.js SERVER CREDS GATEWAYS [FORMER]
 *
 * SERVER and GATEWAYS are the folders of the server's file and of the gateways' file. CREDS is the
 * path of each user's credentials, with a star for the user. FORMER is the folder in which an
 * earlier version kept the credentials of all processes; accounts of that version stay, and so do
 * their credentials. No file keeps the keys of the operator and of Baton's account: to get new
 * keys, remove the files. The data of JetStream belongs to Baton's account, so a new account does
 * not find the old data.
 */
import { copyFileSync, existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { encodeAccount, encodeOperator, encodeUser, fmtCreds } from "nats-jwt";
import { createAccount, createOperator, createUser, type KeyPair } from "nkeys.js";
import { natsRights, type NatsRole } from "./nats-roles.js";
import { exportsToReaders, importsOfReaders, renamedByReaders } from "./reader-account.js";

/** The users in Baton's account. People use the operator's credentials, which allow everything. */
export type NatsUser = NatsRole | "operator";

export interface AccountPlaces {
  /** A folder. */
  readonly server: string;
  /** The path of each user's credentials, with a star for the user. */
  readonly creds: string;
  /** A folder. */
  readonly gateways: string;
  /** The folder in which an earlier version kept the credentials of all processes, if any. */
  readonly former?: string | undefined;
}

export interface AccountFiles {
  /** The server's configuration includes this file, which holds no secret. */
  readonly config: string;
  /** The credentials of each user. */
  readonly creds: Readonly<Record<NatsUser, string>>;
  /** The key with which gateways sign. */
  readonly seed: string;
}

const CLIENTS = { conn: -1, subs: -1, data: -1, payload: -1, wildcards: true };
const JETSTREAM = { streams: -1, consumer: -1, mem_storage: -1, disk_storage: -1 };
/** Readers have no JetStream of their own. */
const NO_JETSTREAM = { streams: 0, consumer: 0, mem_storage: 0, disk_storage: 0 };

export async function makeNatsAccounts({ server, creds, gateways, former }: AccountPlaces): Promise<AccountFiles> {
  const of = (user: NatsUser) => creds.replaceAll("*", user);
  const files = {
    config: join(server, "accounts.conf"),
    creds: { gateway: of("gateway"), worker: of("worker"), jobs: of("jobs"), operator: of("operator") },
    seed: join(gateways, "readers.seed"),
  };
  if (former !== undefined && existsSync(files.config)) keepFormer(former, files);
  if ([files.config, files.seed, ...Object.values(files.creds)].every((file) => existsSync(file))) return files;
  const operator = createOperator();
  const [account, readers, system] = [createAccount(), createAccount(), createAccount()];
  const own = { limits: { ...CLIENTS, ...JETSTREAM, imports: 0, exports: -1 }, exports: exportsToReaders() };
  const accountJwt = await encodeAccount("baton", account, own, { signer: operator });
  const theirs = {
    limits: { ...CLIENTS, ...NO_JETSTREAM, imports: -1, exports: 0 },
    imports: importsOfReaders(account.getPublicKey()),
    mappings: renamedByReaders(),
  };
  const readersJwt = await encodeAccount("readers", readers, theirs, { signer: operator });
  // JetStream does not start without a system account. No client can log in to this account,
  // because its key is forgotten.
  const systemJwt = await encodeAccount("system", system, {}, { signer: operator });
  write(files.seed, Buffer.from(readers.getSeed()), 0o600);
  for (const user of ["gateway", "worker", "jobs", "operator"] as const)
    write(files.creds[user], await credentialsOf(user, account), 0o600);
  const lines = [
    `operator: ${await encodeOperator("baton", operator)}`,
    `system_account: ${system.getPublicKey()}`,
    "resolver: MEMORY",
    "resolver_preload: {",
    `  ${account.getPublicKey()}: ${accountJwt}`,
    `  ${readers.getPublicKey()}: ${readersJwt}`,
    `  ${system.getPublicKey()}: ${systemJwt}`,
    "}",
  ];
  write(files.config, Buffer.from(`${lines.join("\n")}\n`), 0o644);
  return files;
}

/** Copies what an earlier version has made: its account takes no further users. */
function keepFormer(former: string, { creds, seed }: AccountFiles): void {
  const copies = [...Object.values(creds).map((to) => ["baton.creds", to] as const), ["readers.seed", seed] as const];
  for (const [name, to] of copies) {
    const from = join(former, name);
    if (existsSync(to) || !existsSync(from)) continue;
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
    copyFileSync(from, to);
  }
}

async function credentialsOf(user: NatsUser, account: KeyPair): Promise<Buffer> {
  const pair = createUser();
  return Buffer.from(fmtCreds(await encodeUser(user, pair, account, user === "operator" ? {} : claimsOf(user)), pair));
}

function claimsOf(role: NatsRole) {
  const { publish, never, subscribe } = natsRights[role];
  return {
    pub: { allow: [...publish], deny: [...never] },
    sub: { allow: [...subscribe, `_INBOX_${role}.>`], deny: [] },
  };
}

/** Writes a file whole or not at all. */
function write(path: string, content: Buffer, mode: number): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.new`, content, { mode });
  renameSync(`${path}.new`, path);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [server, creds, gateways, former] = process.argv.slice(2);
  if (server === undefined || creds?.includes("*") !== true || gateways === undefined) {
    throw new Error("give the server's folder, the path of a role's credentials with a star, and the gateways' folder");
  }
  await makeNatsAccounts({ server, creds, gateways, former });
}
