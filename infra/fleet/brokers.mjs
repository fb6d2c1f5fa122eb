/** How the private Redis and NATS are started: bound to this machine, data in our folder, on a port of their own. */
import { createHash } from "node:crypto";
import { connect } from "node:net";
import { join } from "node:path";
import { needWritable, root } from "../setup/paths.mjs";
import { Refusal } from "../setup/refusal.mjs";
import { say } from "../setup/terminal.mjs";
import { answers, freePort, whyNotFree } from "./port.mjs";
import { stopOrder } from "./stop.mjs";

const LOCAL = "127.0.0.1";
const CONFIG = { redis: join(root, "infra/redis.conf"), nats: join(root, "infra/nats.conf") };
/** Redis writes what it holds before it goes; NATS holds nothing. */
const GRACE_MS = { redis: 15_000, nats: 5_000 };

/** The port that was asked for, or, where nobody asked, another one when the usual one is taken. */
export async function choosePort(name, { port, fixed }) {
  if ((await whyNotFree(port, LOCAL)) === undefined) return port;
  const variable = `BATON_${name.toUpperCase()}_PORT`;
  if (fixed)
    throw new Refusal(
      `Port ${port} for ${name} (${variable}) is taken by another program: set ${variable} to a free one.`,
    );
  const other = await freePort(LOCAL);
  say(`Port ${port} is taken by another program; ${name} listens on ${other} this time.`);
  return other;
}

/** A member's plan for a broker that was found as a program or as an image. */
export function brokerPlan(name, found, port, home) {
  const data = join(home, name);
  needWritable(data, "Redis keeps its data there, and NATS its process; make it writable, or set BATON_HOME.");
  const plan = { name, order: stopOrder[name], graceMs: GRACE_MS[name], cwd: data, env: process.env };
  if (found.program !== undefined) return { ...plan, program: found.program, args: programArgs(name, port, data) };
  // Two checkouts, two containers: the name carries the folder.
  const container = `baton-${name}-${createHash("sha256").update(home).digest("hex").slice(0, 12)}`;
  return { ...plan, container, program: "docker", args: dockerArgs(name, found.image, port, data, container) };
}

function programArgs(name, port, data) {
  if (name === "nats") return ["--config", CONFIG.nats, "--addr", LOCAL, "--port", String(port)];
  return [CONFIG.redis, "--port", String(port), "--bind", LOCAL, "--protected-mode", "yes", "--dir", data];
}

function dockerArgs(name, image, port, data, container) {
  const inside = { redis: 6379, nats: 4222 }[name];
  const user = process.getuid === undefined ? [] : ["--user", `${process.getuid()}:${process.getgid()}`];
  const common = ["run", "--rm", "--init", "--name", container, "--publish", `${LOCAL}:${port}:${inside}`, ...user];
  const config = ["--volume", `${CONFIG[name]}:/etc/baton.conf:ro`];
  if (name === "nats")
    return [...common, ...config, image, "nats-server", "--config", "/etc/baton.conf", "--port", String(inside)];
  const server = ["redis-server", "/etc/baton.conf", "--dir", "/data", "--protected-mode", "no"];
  return [...common, ...config, "--volume", `${data}:/data`, image, ...server];
}

/** True once the server does its work: Redis listens long before its data is loaded, and refuses every command until then. */
export function isServing(name, port) {
  return new Promise((resolve) => {
    const socket = connect({ port, host: LOCAL, timeout: 1_000 });
    let text = "";
    const end = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    if (name === "redis") socket.once("connect", () => socket.write("PING\r\n"));
    socket.on("data", (chunk) => {
      text += chunk;
      if (text.includes("\r\n")) end(name === "redis" ? text.startsWith("+PONG") : text.startsWith("INFO "));
    });
    socket.once("error", () => end(false));
    socket.once("timeout", () => end(false));
    socket.once("close", () => end(false));
  });
}

/** A given URL is the user's own server: it is asked only whether anything is there. */
export async function needAnswer(variable, urls, usualPort) {
  const places = urls.split(",").map((url) => placeOf(variable, url.trim(), usualPort));
  for (const { host, port } of places) {
    if (await answers(port, host, 3_000)) return;
  }
  const where = places.map(({ host, port }) => `${host}:${port}`).join(", "); // never the URL: it may hold a password
  throw new Refusal(
    `${variable} is set, but nothing answers at ${where}: start that server, or unset ${variable} to have a private one.`,
  );
}

function placeOf(variable, url, usualPort) {
  try {
    const { hostname, port } = new URL(url.includes("://") ? url : `nats://${url}`);
    return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || usualPort) };
  } catch {
    throw new Refusal(`${variable} is not a URL.`);
  }
}
