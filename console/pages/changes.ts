/** How a fleet has changed between two looks: which processes and models have come and gone. */
import type { Fleet } from "../../gateway/answers.js";

export interface Change {
  readonly kind: "came" | "went";
  readonly text: string;
}

export function changesBetween(before: Fleet, after: Fleet): readonly Change[] {
  return [
    ...compare(workersOf(before), workersOf(after), "Worker"),
    ...compare(processesOf(before, "gateways"), processesOf(after, "gateways"), "Gateway"),
    ...compare(processesOf(before, "jobs"), processesOf(after, "jobs"), "Jobs process"),
    ...compare(modelsOf(before), modelsOf(after), "Model", ["is served", "is served no longer"]),
  ];
}

type Names = ReadonlyMap<string, string>;

function compare(before: Names, after: Names, kind: string, [came, went] = ["has joined", "has gone"]): Change[] {
  const missing = (from: Names, other: Names) => [...from].filter(([key]) => !other.has(key)).map(([, name]) => name);
  return [
    ...missing(before, after).map((name): Change => ({ kind: "went", text: `${kind} ${name} ${went}` })),
    ...missing(after, before).map((name): Change => ({ kind: "came", text: `${kind} ${name} ${came}` })),
  ];
}

/** A process that starts again may have the name of the one before. */
function workersOf({ workers }: Fleet): Names {
  return new Map(workers.map(({ name, host, pid, started_at: at }) => [`${name} ${at}`, `${name} (${host}, ${pid})`]));
}

function processesOf(fleet: Fleet, kind: "gateways" | "jobs"): Names {
  return new Map(fleet[kind]?.map(({ name, host, pid }) => [name, `${name} (${host}, ${pid})`]));
}

function modelsOf({ models }: Fleet): Names {
  return new Map(models.map(({ name, version, digest }) => [`${name} ${version} ${digest}`, `${name} ${version}`]));
}
