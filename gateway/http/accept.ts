/**
 * Makes more handles of one listening socket. Node accepts one connection per handle in each turn
 * of its event loop. When a gateway dies, hundreds of clients come to another one, and each would
 * wait a turn: together that is seconds where a turn takes long. Node has no call that makes a
 * second handle, but a handle that is sent to a child process and back has become a second one.
 */
import { spawn, type SendHandle } from "node:child_process";
import type { Server } from "node:net";

const ECHO = "process.on('message', (message, handle) => process.send(message, handle))";
/** A child starts in far less time; one that has not answered by then is killed. */
const PATIENCE_MS = 10_000;

/** A handle that the method `listen` of a server takes. */
export type Handle = SendHandle & object;

/**
 * Resolves when all handles have come, or when no more will because something went wrong.
 * @param count how many more are wanted
 * @param adopt is called with each handle
 */
export async function moreHandles(server: Server, count: number, adopt: (handle: Handle) => void): Promise<void> {
  const child = spawn(process.execPath, ["-e", ECHO], { stdio: ["ignore", "ignore", "ignore", "ipc"] });
  const gone = new Promise<void>((resolve) => {
    child.on("error", () => resolve());
    child.on("exit", () => resolve());
  });
  // The child could not be started, for example because too many files are open.
  if (!child.connected) return;
  const patience = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
  let adopted = 0;
  child.on("message", (_, handle) => {
    // The handle is null where the child had none to send.
    if (typeof handle === "object" && handle !== null) adopt(handle);
    // The child has handles too, and the socket is listened on as long as it lives.
    if (!handle || ++adopted === count) child.kill("SIGKILL");
  });
  // The handle is sent and not the server: of a server the child would make one of its own, and
  // accept connections that end when the child does.
  const own = Reflect.get(server, "_handle") as Handle;
  for (let i = 0; i < count; i++) child.send("handle", own, (error) => error !== null && child.kill("SIGKILL"));
  await gone;
  clearTimeout(patience);
}
