/** The data that passes through BullMQ, as JSON with tensors in base64. */
import type { BenchModel } from "../support/models.js";

export interface StepData {
  readonly sequence: number;
  readonly start: boolean;
  readonly x: string;
}

export interface StepResult {
  readonly y: string;
}

export interface BullWorkerJob {
  readonly redisPort: number;
  readonly queue: string;
  readonly model: BenchModel;
}

export function floatsToText(floats: Float32Array): string {
  return Buffer.from(floats.buffer, floats.byteOffset, floats.byteLength).toString("base64");
}
