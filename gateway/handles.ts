/**
 * More handles of one listening socket. Node accepts one connection per handle and turn of its event loop: when a gateway dies, the hundreds of clients that come to another would wait
 * a turn each, which together are seconds where a turn takes long. Node has no call that makes a second handle; one that is sent to a child process and back is a second one.
 */
import { spawn, type SendHandle } from "node:child_process";
import type { Server } from "node:net";

const ECHO = "process.on('message', (message, handle) => process.send(message, handle))";
/** Long past what a child's start takes. */
const PATIENCE_MS = 10_000;

/** What `listen` of a server takes. */
export type Handle = SendHandle & object;

/**
 * Resolves when no more come: as many as asked for, or fewer if anything goes wrong.
 * @param adopt is given each
 */
export async function moreHandles(server: Server, count: number, adopt: (handle: Handle) => void): Promise<void> {
  const child = spawn(process.execPath, ["-e", ECHO], { stdio: ["ignore", "ignore", "ignore", "ipc"] });
  const gone = new Promise<void>((resolve) => {
    child.on("error", () => resolve());
    child.on("exit", () => resolve());
  });
  // Not even begun: there are too many open files.
  if (!child.connected) return;
  const patience = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
  let adopted = 0;
  child.on("message", (_, handle) => {
    // `null` where there was none to send.
    if (typeof handle === "object" && handle !== null) adopt(handle);
    // The child has handles too: as long as it lives, the socket is listened on.
    if (!handle || ++adopted === count) child.kill("SIGKILL");
  });
  // Not the server itself: the child would make a server of it, and accept connections that end with it.
  const own = Reflect.get(server, "_handle") as Handle;
  for (let i = 0; i < count; i++) child.send("handle", own, (error) => error !== null && child.kill("SIGKILL"));
  await gone;
  clearTimeout(patience);
}
