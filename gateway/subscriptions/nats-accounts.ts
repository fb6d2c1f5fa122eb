/**
 * Makes what a nats-server of the deployment's own asks its clients for: an account that Baton's
 * processes have, one for those who subscribe, credentials for the processes, and the key by which
 * gateways make credentials for subscriptions. All is made once, and kept. It is also a program:
 *
 *     node dist/gateway/subscriptions/nats-accounts.js SERVER PROCESSES GATEWAYS
 *
 * The three folders get what the server, all processes, and gateways alone must have. The keys of
 * operator and of Baton's account are not kept: who wants others empties the folders. What
 * JetStream has is the account's, so with another account it is not found any more.
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
  /** What the server's configuration includes. It holds no secret. */
  readonly config: string;
  /** What processes connect with. */
  readonly creds: string;
  /** What gateways sign with. */
  readonly seed: string;
}

const CLIENTS = { conn: -1, subs: -1, data: -1, payload: -1, wildcards: true };
const JETSTREAM = { streams: -1, consumer: -1, mem_storage: -1, disk_storage: -1 };
/** Those who subscribe have no JetStream of their own. */
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
  // JetStream does not start without one. Nobody can log in to it, since its key is forgotten.
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
