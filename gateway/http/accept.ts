/**
 * Makes more handles of one listening socket. Node accepts one connection per handle in each turn
 * of the event loop. When a gateway dies, hundreds of clients reconnect to another gateway, and
 * each waits a turn: seconds in all if turns are long. Node has no call that makes a second handle.
 * But a handle sent to a child process and back becomes a second handle.
 */
import { spawn, type SendHandle } from "node:child_process";
import type { Server } from "node:net";

const ECHO = "process.on('message', (message, handle) => process.send(message, handle))";
/** A child starts in far less time. The parent kills a child that has not answered by then. */
const PATIENCE_MS = 10_000;

/** A handle that the method `listen` of a server takes. */
export type Handle = SendHandle & object;

/**
 * Resolves when all handles have come, or when a failure means that no more will come.
 * @param count number of handles to add
 * @param adopt called with each handle
 */
export async function moreHandles(server: Server, count: number, adopt: (handle: Handle) => void): Promise<void> {
  const child = spawn(process.execPath, ["-e", ECHO], { stdio: ["ignore", "ignore", "ignore", "ipc"] });
  const gone = new Promise<void>((resolve) => {
    child.on("error", () => resolve());
    child.on("exit", () => resolve());
  });
  // The child did not start, for example because too many files are open.
  if (!child.connected) return;
  const patience = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
  let adopted = 0;
  child.on("message", (_, handle) => {
    // The handle is null if the child had none to send.
    if (typeof handle === "object" && handle !== null) adopt(handle);
    // The child holds handles too, and the socket stays open for listening until the child exits.
    if (!handle || ++adopted === count) child.kill("SIGKILL");
  });
  // Sends the handle, not the server. From a server the child would make a server of its own, and
  // the connections that it accepts would end with the child.
  const own = Reflect.get(server, "_handle") as Handle;
  for (let i = 0; i < count; i++) child.send("handle", own, (error) => error !== null && child.kill("SIGKILL"));
  await gone;
  clearTimeout(patience);
}
