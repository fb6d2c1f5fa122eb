/** Whether a port can be listened on, found out by listening: that is also right about ports of other users and containers. */
import { connect, createServer } from "node:net";

export async function isFree(port, host) {
  if (!(await canListen(port, host))) return false;
  // macOS lets one listen on 127.0.0.1 beside a server on all addresses; whoever answers there has the port.
  return !(await answers(port, "127.0.0.1"));
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

function canListen(port, host) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
