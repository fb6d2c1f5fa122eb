/**
 * The two servers that the fleet needs and that npm cannot install: their names, oldest versions
 * and packages, and the commands for a machine that lacks these servers.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./paths.mjs";

/**
 * @typedef {object} BrokerKind
 * @property {string} title
 * @property {string} url the setting that names the user's own server
 * @property {[string, ...string[]]} programs names of the executable, the usual name first
 * @property {string} floor the oldest version that Baton accepts
 * @property {string} package the package of Debian and Ubuntu
 * @property {string} [brew] the package of another package manager; absent: that manager lacks the
 *   package
 * @property {string} [dnf]
 * @property {string} [pacman]
 */
/** @typedef {"redis" | "nats"} BrokerName */

/** @type {readonly BrokerName[]} */
export const brokerNames = ["redis", "nats"];

/** @type {Readonly<Record<BrokerName, BrokerKind>>} */
export const brokerKinds = {
  redis: {
    title: "Redis (or Valkey)",
    url: "BATON_REDIS_URL",
    programs: ["redis-server", "valkey-server"],
    floor: "7.0",
    package: "redis-server",
    brew: "redis",
    dnf: "valkey",
    pacman: "valkey",
  },
  nats: {
    title: "NATS",
    url: "BATON_NATS_URL",
    programs: ["nats-server"],
    floor: "2.9", // Debian 12 has this version
    package: "nats-server",
    brew: "nats-server",
    pacman: "nats-server",
  },
};

/**
 * The image that docker-compose.yml names, so that a single place pins the version.
 *
 * @param {BrokerName} name
 */
export function brokerImage(name) {
  const compose = readFileSync(join(root, "docker-compose.yml"), "utf8");
  const image = new RegExp(`^ +image: (${name}:\\S+)`, "m").exec(compose)?.[1];
  if (image === undefined) throw new Error(`docker-compose.yml names no image for ${name}`);
  return image;
}

/**
 * Compares versions such as "7.0.15" number by number.
 *
 * @param {string} version
 * @param {string} floor
 */
export function atLeast(version, floor) {
  return version.localeCompare(floor, "en", { numeric: true }) >= 0;
}

/**
 * The message for a machine that lacks a server if Baton cannot install the server.
 *
 * @param {readonly BrokerKind[]} missing
 * @param {readonly string[]} tried the failed attempts, with reasons
 */
export function brokerAdvice(missing, tried) {
  const what = missing.map((kind) => `${kind.title} ${kind.floor} or newer`).join(" and ");
  const urls = missing.map((kind) => kind.url).join(" and ");
  const why = tried.length > 0 ? `\nTried: ${tried.join("; ")}.` : "";
  return `Baton needs ${what}, and found none on this machine. ${howTo(missing)}, or start Docker, or set ${urls} to running servers.${why}`;
}

/** @param {readonly BrokerKind[]} missing */
function howTo(missing) {
  if (process.platform === "darwin") return typed(missing, "brew install", "brew");
  if (process.platform === "win32")
    return "Redis does not run on Windows itself: run Baton in WSL (`wsl --install`, then npm start there)";
  const family = linuxFamily();
  if (/debian|ubuntu/.test(family)) return typed(missing, "sudo apt-get install", "package");
  if (/fedora|rhel|centos/.test(family)) return typed(missing, "sudo dnf install", "dnf");
  if (/arch/.test(family)) return typed(missing, "sudo pacman -S", "pacman");
  return `Install ${missing.map((kind) => kind.programs.join(" or ")).join(" and ")} with this system's package manager`;
}

/**
 * The command for a package manager, and the program to fetch if that manager lacks a package.
 *
 * @param {readonly BrokerKind[]} missing
 * @param {string} command
 * @param {"package" | "brew" | "dnf" | "pacman"} manager
 */
function typed(missing, command, manager) {
  const packages = missing.flatMap((kind) => kind[manager] ?? []);
  const elsewhere = missing.filter((kind) => kind[manager] === undefined).map((kind) => kind.programs[0]);
  const byCommand = packages.length > 0 ? [`type \`${command} ${packages.join(" ")}\``] : [];
  const byHand = elsewhere.map((program) => `put ${program} on the PATH (https://nats.io/download)`);
  return [...byCommand, ...byHand].join(" and ").replace(/^./, (letter) => letter.toUpperCase());
}

/** The distribution and its ancestors, such as "ubuntu debian". */
function linuxFamily() {
  if (!existsSync("/etc/os-release")) return "";
  return [...readFileSync("/etc/os-release", "utf8").matchAll(/^ID(?:_LIKE)?=(.*)$/gm)]
    .map((match) => match[1])
    .join(" ");
}
