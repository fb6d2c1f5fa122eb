/**
 * The figures of the host and of its NVIDIA cards, under Triton's names, read every two seconds as
 * Triton does. A figure that nothing tells is absent. Reads `/proc` of Linux; one `nvidia-smi` runs
 * as long as the worker and prints a line for each card, because each start of it takes the time of
 * hundreds of steps.
 */
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { cells, type Cells } from "#shared/metrics/cells.js";
import { visibleCards } from "./card.js";

const EVERY_S = 2;
const KIB = 1_024;
const MIB = 1_048_576;
const FIELDS = ["index", "uuid", "utilization.gpu", "memory.total", "memory.used", "power.draw", "power.limit"];
const QUERY = [`--query-gpu=${FIELDS.join(",")}`, "--format=csv,noheader,nounits", `--loop=${EVERY_S}`];

/** What a line of nvidia-smi says of a card. A number that the card does not tell is absent. */
export interface CardFigures {
  readonly index: number;
  readonly uuid: string;
  /** 0 to 1. */
  readonly utilization?: number | undefined;
  readonly totalBytes?: number | undefined;
  readonly usedBytes?: number | undefined;
  /** W. */
  readonly powerUsage?: number | undefined;
  readonly powerLimit?: number | undefined;
}

/** Reads a line such as `0, GPU-5f3c, 37, 81559, 4, 71.5, 700.00`; undefined for another line. */
export function cardFigures(line: string): CardFigures | undefined {
  const [index = "", uuid = "", ...rest] = line.split(",").map((field) => field.trim());
  if (!/^\d+$/.test(index) || uuid === "") return undefined;
  // Some cards give "[N/A]" in place of a number.
  const [percent, total, used, powerUsage, powerLimit] = rest.map((field) =>
    /^\d+(?:\.\d+)?$/.test(field) ? Number(field) : undefined,
  );
  return {
    index: Number(index),
    uuid,
    utilization: percent === undefined ? undefined : percent / 100,
    totalBytes: total === undefined ? undefined : total * MIB,
    usedBytes: used === undefined ? undefined : used * MIB,
    powerUsage,
    powerLimit,
  };
}

/** Time of all CPUs since the start of the host, in ticks. */
export interface CpuTimes {
  readonly busy: number;
  readonly all: number;
}

/** @param stat the text of `/proc/stat`; undefined for another text */
export function cpuTimes(stat: string): CpuTimes | undefined {
  const ticks = /^cpu +(.*)$/m.exec(stat)?.[1]?.split(" ").map(Number);
  // user, nice, system, idle, iowait, irq, softirq, steal; guests are a part of user and nice.
  const [user, nice, system, idle, iowait, irq, softirq, steal] = ticks ?? [];
  if (user === undefined || nice === undefined || system === undefined || idle === undefined) return undefined;
  const busy = user + nice + system + (irq ?? 0) + (softirq ?? 0) + (steal ?? 0);
  return { busy, all: busy + idle + (iowait ?? 0) };
}

/** Bytes of the host's memory, from the text of `/proc/meminfo`; undefined for another text. */
export function hostMemory(meminfo: string): { readonly total: number; readonly used: number } | undefined {
  const bytes = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB$`, "m").exec(meminfo)?.[1]) * KIB;
  const [total, available] = [bytes("MemTotal"), bytes("MemAvailable")];
  return Number.isNaN(total + available) ? undefined : { total, used: total - available };
}

/** Shows the host's figures until the process ends. */
export async function showHost(): Promise<void> {
  const text = (name: string) => readFile(`/proc/${name}`, "utf8").catch(() => "");
  let times = cpuTimes(await text("stat"));
  const read = async () => {
    const [stat, meminfo] = await Promise.all([text("stat"), text("meminfo")]);
    const [now, memory] = [cpuTimes(stat), hostMemory(meminfo)];
    const passed = now === undefined || times === undefined ? 0 : now.all - times.all;
    const part = now !== undefined && times !== undefined && passed > 0 ? (now.busy - times.busy) / passed : undefined;
    times = now;
    const one = (value: number | undefined) => (value === undefined ? [] : [{ labels: {}, value }]);
    cells.replace("nv_cpu_utilization", one(part));
    cells.replace("nv_cpu_memory_total_bytes", one(memory?.total));
    cells.replace("nv_cpu_memory_used_bytes", one(memory?.used));
  };
  await read();
  setInterval(() => void read(), EVERY_S * 1_000).unref();
}

/**
 * Shows the figures of the cards that this process sees, until nvidia-smi or the process ends.
 *
 * @param env of this process
 * @returns ends nvidia-smi
 */
export function showCards(env: NodeJS.ProcessEnv): () => void {
  const program = spawn("nvidia-smi", QUERY, { env, stdio: ["ignore", "pipe", "ignore"] });
  const figures = new CardCells(cells, env["CUDA_VISIBLE_DEVICES"]);
  createInterface({ input: program.stdout }).on("line", (line) => figures.take(line));
  // Without the driver there is no such program, or it ends at once.
  program.on("error", () => undefined).on("close", () => figures.clear());
  program.unref();
  return () => void program.kill();
}

const gauges = {
  utilization: "nv_gpu_utilization",
  totalBytes: "nv_gpu_memory_total_bytes",
  usedBytes: "nv_gpu_memory_used_bytes",
  powerUsage: "nv_gpu_power_usage",
  powerLimit: "nv_gpu_power_limit",
} as const;

/** The series of the cards. */
class CardCells {
  readonly #cells: Cells;
  readonly #visible: string | undefined;
  readonly #cards = new Map<string, CardFigures>();

  constructor(all: Cells, visible: string | undefined) {
    this.#cells = all;
    this.#visible = visible;
  }

  take(line: string): void {
    const card = cardFigures(line);
    if (card === undefined) return;
    this.#cards.set(card.uuid, card);
    const seen = visibleCards([...this.#cards.values()], this.#visible);
    this.#show(seen);
    if (card.powerUsage === undefined || !seen.includes(card)) return;
    // The driver has no such sum here, so each line stands for the time until the next.
    const energy = this.#cells.counter("nv_energy_consumption", { gpu_uuid: card.uuid });
    this.#cells.add(energy, card.powerUsage * EVERY_S);
  }

  /** Nothing tells these figures any more. The energy so far stays true. */
  clear(): void {
    this.#show([]);
  }

  #show(cards: readonly CardFigures[]): void {
    for (const [member, name] of Object.entries(gauges) as [
      keyof typeof gauges,
      (typeof gauges)[keyof typeof gauges],
    ][]) {
      const samples = cards.flatMap(({ uuid, [member]: value }) =>
        value === undefined ? [] : [{ labels: { gpu_uuid: uuid }, value }],
      );
      this.#cells.replace(name, samples);
    }
  }
}
