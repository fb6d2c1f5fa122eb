/**
 * The inputs of steps and their expected outputs. Every sequence follows one of a few patterns of a
 * few steps and then starts anew. So a check can compare every answer of a run of any length with
 * outputs computed beforehand.
 */
import { readFileSync } from "node:fs";
import { seededRandom } from "../../support/fleet/random.js";

export const PATTERNS = 4;
export const STEPS = 32;
const VECTORS = 16;
const SEED = 20_261_120;

/** The inputs of all patterns. */
export function vectors(size: number): Float32Array[] {
  const random = seededRandom(SEED);
  return Array.from({ length: VECTORS }, () => Float32Array.from({ length: size }, () => random.unit() * 2 - 1));
}

/** Which vector a pattern feeds at a step. No two patterns agree for long. */
export function vectorAt(pattern: number, step: number): number {
  return (5 * pattern + (2 * pattern + 1) * step) % VECTORS;
}

/** Offset of a step's answer in the outputs. */
export function outputAt(pattern: number, step: number, size: number): number {
  return (pattern * STEPS + step) * size;
}

/** Reads the file into a copy, because pooled buffers are not aligned. */
export function readFloats(file: string): Float32Array {
  return new Float32Array(Uint8Array.from(readFileSync(file)).buffer);
}
