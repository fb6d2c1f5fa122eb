/** The work of a generator's lane: streams. */
import { generationSpec } from "#shared/contract/generation.js";
import { decodeFrame } from "#shared/frame.js";
import type { Solitude } from "../batch/solitude.js";
import type { LaneWork } from "../lane.js";
import type { StreamQueue } from "../queue/lane.js";
import { GeneratorLoop } from "./loop.js";
import type { ServingGenerator } from "./serving.js";
import { slotsFor } from "./slots.js";

/** Read at once, so that workers that read side by side share what comes. */
const READ_AT_ONCE = 8;

export function generatorWork(
  model: ServingGenerator,
  { queue, solitude, maxRunsAlone }: { queue: StreamQueue; solitude: Solitude; maxRunsAlone: number },
): LaneWork {
  let used = () => 0;
  return {
    model: model.name,
    batched: false,
    maxIdleMs: model.maxIdleMs,
    suspectRoom: ({ suspects }) => slotsFor("suspect", model.slots) - used() - suspects.length,
    accepts: ({ frame }) => generationSpec.safeParse(decodeFrame(frame).meta["generation"]).success,
    room: ({ waiting }) => Math.min(READ_AT_ONCE, slotsFor("fresh", model.slots) - used()) - waiting.length,
    run(parts, signal) {
      const loop = new GeneratorLoop({ ...parts, queue, model, solitude, maxRunsAlone });
      used = () => loop.used;
      return loop.run(signal);
    },
  };
}
