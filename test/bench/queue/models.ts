/**
 * Copies of `accumulate`, a model that computes next to nothing, and the requests for these copies.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../support/fleet/root.js";
import { stepRequest } from "../load/requests.js";

export interface Copy {
  readonly name: string;
  /** How long a batch waits for more, in ms. */
  readonly delayMs?: number;
  /** Most steps in a batch. */
  readonly batch?: number;
  /** How long a sequence lives without a step, in ms. */
  readonly idleMs?: number;
}

/** Most sequences of a copy, more than any row needs. */
const CANDIDATES = 1_000_000;

/** Makes a repository of copies of `accumulate`, a running sum per sequence. */
export function copiesOfAccumulate(folder: string, copies: readonly Copy[]): string {
  const from = join(root, "infra/models/accumulate");
  mkdirSync(folder, { recursive: true });
  const text = readFileSync(join(from, "config.pbtxt"), "utf8");
  for (const copy of copies) {
    cpSync(from, join(folder, copy.name), { recursive: true });
    writeFileSync(join(folder, copy.name, "config.pbtxt"), configured(text, copy));
  }
  return folder;
}

/**
 * @param text a configuration in protobuf's text format
 * @throws Error that names a field missing in the text
 */
export function configured(text: string, { name, delayMs = 0.5, batch = 32, idleMs = 60_000 }: Copy): string {
  const fields = {
    name: `"${name}"`,
    max_batch_size: batch,
    max_candidate_sequences: CANDIDATES,
    max_queue_delay_microseconds: delayMs * 1_000,
    max_sequence_idle_microseconds: idleMs * 1_000,
  };
  return Object.entries(fields).reduce((changed, [field, value]) => {
    const found = new RegExp(`\\b${field}: ("[^"]*"|\\d+)`);
    if (!found.test(changed)) throw new Error(`the configuration has no ${field}`);
    return changed.replace(found, `${field}: ${value}`);
  }, text);
}

/** @returns the HTTP request of a step that adds the sequence's own number to its sum */
export function addingStep(model: string, sequence: number, start: boolean, key?: string): Buffer {
  const data = Buffer.alloc(4);
  data.writeInt32LE(sequence);
  const input = { name: "INPUT", shape: [1, 1], datatype: "INT32" };
  return stepRequest(model, { sequence, start, input, data, key });
}

/**
 * Bytes of a step's tensors, each sent to Redis once: INPUT, OUTPUT, END_OUT and the state have
 * four bytes each, CORRID_OUT eight.
 */
export const STEP_BYTES = 24;

/** Bytes of a sequence's state. */
export const STATE_BYTES = 4;
