/** The one message for a machine that has no Redis or no NATS and on which neither may be installed: what to type, on this platform. */
import { existsSync, readFileSync } from "node:fs";

export function brokerAdvice(missing, tried) {
  const what = missing.map((kind) => `${kind.title} ${kind.floor} or newer`).join(" and ");
  const urls = missing.map((kind) => kind.url).join(" and ");
  const why = tried.length > 0 ? `\nTried: ${tried.join("; ")}.` : "";
  return `Baton needs ${what}, and found none on this machine. ${howTo(missing)}, or start Docker, or set ${urls} to running servers.${why}`;
}

function howTo(missing) {
  const type = (command, manager) => {
    const packages = missing.flatMap((kind) => kind[manager] ?? []);
    const elsewhere = missing.filter((kind) => kind[manager] === undefined).map((kind) => kind.programs[0]);
    const byCommand = packages.length > 0 ? [`type \`${command} ${packages.join(" ")}\``] : [];
    const byHand = elsewhere.map((program) => `put ${program} on the PATH (https://nats.io/download)`);
    return [...byCommand, ...byHand].join(" and ").replace(/^./, (letter) => letter.toUpperCase());
  };
  if (process.platform === "darwin") return type("brew install", "brew");
  if (process.platform === "win32")
    return "Redis does not run on Windows itself: run Baton in WSL (`wsl --install`, then npm start there)";
  const family = linuxFamily();
  if (/debian|ubuntu/.test(family)) return type("sudo apt-get install", "package");
  if (/fedora|rhel|centos/.test(family)) return type("sudo dnf install", "dnf");
  if (/arch/.test(family)) return type("sudo pacman -S", "pacman");
  return `Install ${missing.map((kind) => kind.programs.join(" or ")).join(" and ")} with this system's package manager`;
}

function linuxFamily() {
  if (!existsSync("/etc/os-release")) return "";
  return [...readFileSync("/etc/os-release", "utf8").matchAll(/^ID(?:_LIKE)?=(.*)$/gm)]
    .map((match) => match[1])
    .join(" ");
}
