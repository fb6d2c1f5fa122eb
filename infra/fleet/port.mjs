/** Whether a port can be listened on, found out by listening: that is also right about ports of other users and containers. */
import { connect, createServer } from "node:net";

/** Resolves with undefined when the port is free, else with the error code that says why it cannot be had. */
export async function whyNotFree(port, host) {
  const code = await tryToListen(port, host);
  if (code !== undefined) return code;
  // macOS lets one listen on 127.0.0.1 beside a server on all addresses; whoever answers there has the port.
  return (await answers(port, "127.0.0.1")) ? "EADDRINUSE" : undefined;
}

export async function freePort(host) {
  const server = createServer();
  await new Promise((resolve, reject) => server.once("error", reject).listen(0, host, resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export function answers(port, host, timeoutMs = 1_000) {
  return new Promise((resolve) => {
    const socket = connect({ port, host, timeout: timeoutMs });
    const end = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => end(true));
    socket.once("error", () => end(false));
    socket.once("timeout", () => end(false));
  });
}

function tryToListen(port, host) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error) => resolve(error.code));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}
