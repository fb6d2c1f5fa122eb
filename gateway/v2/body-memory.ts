/**
 * What bodies may hold together, while they are received, inflated and parsed. Each has its own
 * limit, but many large ones at a time would take all memory.
 */
import { InferenceError } from "#shared/errors.js";

/** Bodies up to this length are not counted: there is always room for them. */
const uncountedBytes = 64 * 1024;

export class BodyMemory {
  readonly #limit: number;
  #held = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Room for one body. Whoever asks for it releases it. */
  room(): BodyRoom {
    let held = 0;
    return {
      grow: (bytes) => {
        if (bytes <= uncountedBytes) return;
        if (this.#held + bytes - held > this.#limit) {
          throw new InferenceError(
            "unavailable",
            `request bodies together are larger than the limit of ${this.#limit} bytes, try again later`,
          );
        }
        this.#held += bytes - held;
        held = bytes;
      },
      release: () => {
        this.#held -= held;
        held = 0;
      },
    };
  }
}

export interface BodyRoom {
  /** @param bytes that the body holds from now on. @throws InferenceError where there is no room */
  grow(bytes: number): void;
  release(): void;
}
