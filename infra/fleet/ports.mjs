/**
 * Questions about a port: whether it is free, whether a server answers on it, and whether the
 * broker on it does its work. The test for a free port is to listen, which is also right about the
 * ports of other users and of containers.
 */
import { connect, createServer } from "node:net";
import { codeOf, Refusal, say } from "../setup/terminal.mjs";

/** @typedef {import("../setup/broker-kinds.mjs").BrokerName} BrokerName */

/** A Sentinel's port, unless its configuration says otherwise. */
const SENTINEL_PORT = 26_379;

/** The private brokers listen on this address only. */
export const LOCAL = "127.0.0.1";

/**
 * @param {{ httpPort: number, host: string }} settings
 * @throws {Refusal} if the gateway could not listen on this port
 */
export async function needHttpPort({ httpPort, host }) {
  const code = await whyNotFree(httpPort, host);
  if (code === undefined) return;
  /** @type {Record<string, string>} */
  const reasons = {
    EADDRINUSE: `Port ${httpPort} is taken by another program: stop that, or choose another port, as in \`BATON_HTTP_PORT=8080 npm start\`.`,
    EACCES: `Port ${httpPort} (BATON_HTTP_PORT) is reserved for root: choose one above 1023.`,
    EADDRNOTAVAIL: `${host} (BATON_HOST) is not an address of this machine: 127.0.0.1 and 0.0.0.0 always are.`,
  };
  throw new Refusal(
    reasons[code] ?? `Baton cannot listen on ${host}:${httpPort} (${code}): set BATON_HOST and BATON_HTTP_PORT.`,
  );
}

/**
 * A broker's port. If the usual port is taken and the user has not asked for a port, another port.
 *
 * @param {string} name
 * @param {{ port: number, fixed: boolean }} setting
 * @param {string} variable names the port
 * @throws {Refusal} if the port that the user asked for is taken
 */
export async function chooseBrokerPort(name, { port, fixed }, variable = `BATON_${name.toUpperCase()}_PORT`) {
  if ((await whyNotFree(port, LOCAL)) === undefined) return port;
  if (fixed)
    throw new Refusal(
      `Port ${port} for ${name} (${variable}) is taken by another program: set ${variable} to a free one.`,
    );
  const other = await listenBriefly(0, LOCAL);
  say(`Port ${port} is taken by another program; ${name} listens on ${other} this time.`);
  return other;
}

/**
 * Returns undefined if the port is free, else the code of the error that gives the reason.
 *
 * @param {number} port
 * @param {string} host
 */
async function whyNotFree(port, host) {
  try {
    await listenBriefly(port, host);
  } catch (error) {
    return codeOf(error) ?? String(error);
  }
  // macOS lets a program listen on 127.0.0.1 beside a server on all addresses; a server that
  // answers has the port.
  return (await answers(port, LOCAL, 1_000)) ? "EADDRINUSE" : undefined;
}

/**
 * Listens and stops listening. Returns the port, which the system chooses if `port` is 0.
 *
 * @param {number} port
 * @param {string} host
 * @returns {Promise<number>}
 */
function listenBriefly(port, host) {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : port));
    });
  });
}

/**
 * Whether a server accepts a connection.
 *
 * @param {number} port
 * @param {string} host
 * @param {number} timeoutMs
 */
function answers(port, host, timeoutMs) {
  return ask(port, host, timeoutMs, (socket, end) => socket.once("connect", () => end(true)));
}

/**
 * Whether a broker does its work. Redis listens long before its data is loaded, and refuses every
 * command until then. Redis's user for this question has no password.
 *
 * @param {BrokerName} name
 * @param {number} port
 */
export function isServing(name, port) {
  return ask(port, LOCAL, 1_000, (socket, end) => {
    let text = "";
    if (name === "redis") socket.once("connect", () => socket.write("AUTH health any\r\nPING\r\n"));
    const whole = name === "redis" ? /\r\n.*\r\n$/s : /\r\n/;
    socket.on("data", (chunk) => {
      text += chunk.toString();
      if (whole.test(text)) end(text.startsWith(name === "redis" ? "+OK\r\n+PONG" : "INFO "));
    });
  });
}

/**
 * Connects, and resolves with the result of `talk`; false if the connection fails or is silent for
 * `timeoutMs`.
 *
 * @param {number} port
 * @param {string} host or the path of a Unix socket
 * @param {number} timeoutMs
 * @param {(socket: import("node:net").Socket, end: (answer: boolean) => void) => void} talk
 * @returns {Promise<boolean>}
 */
function ask(port, host, timeoutMs, talk) {
  return new Promise((resolve) => {
    const place = host.startsWith("/") ? { path: host } : { port, host };
    const socket = connect({ ...place, timeout: timeoutMs });
    const end = (/** @type {boolean} */ answer) => {
      socket.destroy();
      resolve(answer);
    };
    talk(socket, end);
    for (const event of ["error", "timeout", "close"]) socket.once(event, () => end(false));
  });
}

/**
 * Checks only that the user's own server answers at this URL.
 *
 * @param {string} variable the setting
 * @param {string} urls separated by commas; a single answer is enough
 * @param {number} usualPort
 * @throws {Refusal} if none answers
 */
export async function needAnswer(variable, urls, usualPort) {
  const usual = /^rediss?\+sentinel:/i.test(urls) ? SENTINEL_PORT : usualPort;
  const places = urls.split(",").map((url) => placeOf(variable, url.trim(), usual));
  for (const { host, port } of places) {
    if (await answers(port, host, 3_000)) return;
  }
  // The message leaves out the URL, because the URL may hold a password.
  const where = places.map(({ host, port }) => (host.startsWith("/") ? host : `${host}:${port}`)).join(", ");
  throw new Refusal(
    `${variable} is set, but nothing answers at ${where}: start that server, or unset ${variable} to have a private one.`,
  );
}

/**
 * @param {string} variable
 * @param {string} url
 * @param {number} usualPort
 */
function placeOf(variable, url, usualPort) {
  if (url.startsWith("/")) return { host: url, port: usualPort };
  try {
    const { hostname, port } = new URL(url.includes("://") ? url : `nats://${url}`);
    return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || usualPort) };
  } catch {
    throw new Refusal(`${variable} is not a URL.`);
  }
}
