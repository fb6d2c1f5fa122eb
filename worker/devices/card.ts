/**
 * Describes the card that a worker computes on, for the fleet's page. ONNX Runtime for Node has no
 * such facts, so this file asks the drivers, and leaves out all that no driver tells.
 */
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Announcement } from "#shared/contract/announcement.js";
import type { Placement } from "../onnx/providers.js";

export type DescribedDevice = NonNullable<Announcement["device"]>;

type Memory = NonNullable<DescribedDevice["memory"]>;

/** A card in the list of nvidia-smi. */
export interface NvidiaCard {
  readonly index: number;
  readonly uuid: string;
  readonly name: string;
  readonly memory: Memory;
}

/** After this time the worker no longer waits for nvidia-smi. */
const PATIENCE_MS = 5_000;
const MIB = 1_048_576;
const QUERY = ["--query-gpu=index,uuid,name,memory.total,memory.used", "--format=csv,noheader,nounits"];
/** Drivers that compute on the CPU. Each key is a part of the name of the driver's file. */
const SOFTWARE = { swiftshader: "SwiftShader (software)", lvp: "llvmpipe (software)" };

/**
 * @returns the compute capability of each card that this process sees, such as "9.0", by the place
 *   of the card; empty if NVIDIA's driver does not tell them, as old drivers do not
 */
export async function computeCapabilities(env: NodeJS.ProcessEnv): Promise<readonly string[]> {
  const query = ["--query-gpu=index,uuid,compute_cap", "--format=csv,noheader,nounits"];
  const listed = await promisify(execFile)("nvidia-smi", query, { timeout: PATIENCE_MS }).then(
    ({ stdout }) => parseCapabilities(stdout),
    () => [],
  );
  return visibleCards(listed, env["CUDA_VISIBLE_DEVICES"]).map(({ capability }) => capability);
}

/** Reads lines such as `0, GPU-5f3c, 9.0`. */
export function parseCapabilities(text: string) {
  return text.split("\n").flatMap((line) => {
    const [index = "", uuid = "", capability = ""] = line.split(",").map((field) => field.trim());
    return /^\d+$/.test(index) && /^\d+\.\d+$/.test(capability) ? [{ index: Number(index), uuid, capability }] : [];
  });
}

/** @returns the cards that this process sees; empty if NVIDIA's driver does not answer */
export async function nvidiaCards(env: NodeJS.ProcessEnv): Promise<readonly NvidiaCard[]> {
  const asked = promisify(execFile)("nvidia-smi", QUERY, { timeout: PATIENCE_MS });
  const listed = await asked.then(
    ({ stdout }) => parseNvidia(stdout),
    () => [],
  );
  return visibleCards(listed, env["CUDA_VISIBLE_DEVICES"]);
}

/** Reads lines such as `0, GPU-5f3c, NVIDIA H100 80GB HBM3, 81559, 4`. */
export function parseNvidia(text: string): NvidiaCard[] {
  return text.split("\n").flatMap((line) => {
    const [index, uuid, name, total, used] = line.split(",").map((field) => field.trim());
    if (uuid === undefined || name === undefined || !/^\d+$/.test(index ?? "")) return [];
    // Some cards give "[N/A]" instead of a number.
    const bytes = (mib: string | undefined) => (Number(mib) || 0) * MIB;
    return [{ index: Number(index), uuid, name, memory: { total: bytes(total), used: bytes(used) } }];
  });
}

/**
 * @param visible CUDA_VISIBLE_DEVICES: numbers or the beginnings of UUIDs. As in CUDA, the first
 *   entry without a card ends the list.
 * @returns the cards that a process sees; the place of a card is the number that the process uses
 */
export function visibleCards<Card extends Pick<NvidiaCard, "index" | "uuid">>(
  cards: readonly Card[],
  visible: string | undefined,
): readonly Card[] {
  if (visible === undefined) return cards;
  const seen: Card[] = [];
  for (const name of visible.split(",").map((one) => one.trim())) {
    const card = cards.find(({ index, uuid }) => name === String(index) || (name !== "" && uuid.startsWith(name)));
    if (card === undefined) break;
    seen.push(card);
  }
  return seen;
}

/**
 * Describes the device that a worker computes on.
 *
 * @param env of this process
 */
export async function describeCard({ providers, gpu }: Placement, env: NodeJS.ProcessEnv): Promise<DescribedDevice> {
  const [provider] = providers;
  const described = { provider, ...(gpu !== undefined && { gpu }) };
  if (gpu === undefined) return { ...described, memory: await ownMemory() };
  const software = provider === "webgpu" ? softwareDriver(env) : undefined;
  if (software !== undefined) return { ...described, name: software, memory: await ownMemory() };
  const card = (await nvidiaCards(env))[gpu];
  if (card !== undefined) return { ...described, name: card.name, memory: card.memory };
  const memory = await amdMemory();
  return { ...described, ...(memory && { memory }) };
}

/**
 * @returns the name of the Vulkan driver that the environment chooses, if that driver computes on
 *   the CPU
 */
export function softwareDriver(env: NodeJS.ProcessEnv): string | undefined {
  const files = env["VK_DRIVER_FILES"] ?? env["VK_ICD_FILENAMES"] ?? "";
  return Object.entries(SOFTWARE).find(([part]) => files.includes(part))?.[1];
}

/** The memory that the machine or the container grants this process, and the part in use. */
async function ownMemory(): Promise<Memory> {
  // Without a limit the value is 0, or more memory than any machine has.
  const limit = process.constrainedMemory();
  const total = limit > 0 && limit < totalmem() ? limit : totalmem();
  return { total, used: process.memoryUsage.rss() };
}

/** The memory of the first card whose AMD driver reports it. */
async function amdMemory(): Promise<Memory | undefined> {
  const folder = "/sys/class/drm";
  const cards = await readdir(folder).catch(() => []);
  for (const card of cards) {
    const read = async (file: string) => Number(await readFile(join(folder, card, "device", file), "utf8"));
    try {
      return { total: await read("mem_info_vram_total"), used: await read("mem_info_vram_used") };
    } catch {
      // This entry is a connector, or a card of another make.
    }
  }
  return undefined;
}
