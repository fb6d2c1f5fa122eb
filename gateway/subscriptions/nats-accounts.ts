/**
 * Makes the accounts and keys for a deployment's own nats-server: an account for Baton's processes,
 * an account for readers, credentials for the processes, and the key with which gateways sign the
 * credentials of subscriptions. Makes them once, and keeps them. Also runs as a program:
 *
 *     node dist/gateway/subscriptions/nats-accounts.js SERVER PROCESSES GATEWAYS
 *
 * The three folders receive the files for the server, for all processes, and for gateways alone. No
 * file keeps the keys of the operator and of Baton's account: to get new keys, empty the folders.
 * The data of JetStream belongs to Baton's account, so a new account does not find the old data.
 */
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { encodeAccount, encodeOperator, encodeUser, fmtCreds } from "nats-jwt";
import { createAccount, createOperator, createUser } from "nkeys.js";
import { exportsToReaders, importsOfReaders, renamedByReaders } from "./reader-account.js";

export interface AccountFolders {
  readonly server: string;
  readonly processes: string;
  readonly gateways: string;
}

export interface AccountFiles {
  /** The server's configuration includes this file, which holds no secret. */
  readonly config: string;
  /** The credentials of Baton's processes. */
  readonly creds: string;
  /** The key with which gateways sign. */
  readonly seed: string;
}

const CLIENTS = { conn: -1, subs: -1, data: -1, payload: -1, wildcards: true };
const JETSTREAM = { streams: -1, consumer: -1, mem_storage: -1, disk_storage: -1 };
/** Readers have no JetStream of their own. */
const NO_JETSTREAM = { streams: 0, consumer: 0, mem_storage: 0, disk_storage: 0 };

export async function makeNatsAccounts({ server, processes, gateways }: AccountFolders): Promise<AccountFiles> {
  const files = {
    config: join(server, "accounts.conf"),
    creds: join(processes, "baton.creds"),
    seed: join(gateways, "readers.seed"),
  };
  if (Object.values(files).every((file) => existsSync(file))) return files;
  const [operator, user] = [createOperator(), createUser()];
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
  write(files.creds, Buffer.from(fmtCreds(await encodeUser("baton", user, account, {}), user)), 0o600);
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

/** Writes a file whole or not at all. */
function write(path: string, content: Buffer, mode: number): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.new`, content, { mode });
  renameSync(`${path}.new`, path);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [server, processes, gateways] = process.argv.slice(2);
  if (server === undefined || processes === undefined || gateways === undefined) {
    throw new Error("give three folders: of the server, of all processes, and of gateways");
  }
  await makeNatsAccounts({ server, processes, gateways });
}
