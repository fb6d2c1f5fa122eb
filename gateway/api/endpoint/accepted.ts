/** The answer to `Prefer: respond-async`, on every path to inference. */
import { z } from "zod";
import type { Answer } from "./endpoint.js";

export const acceptedAnswer: Answer = {
  says: "The request runs in the background, because the client prefers respond-async.",
  shape: () => z.strictObject({ id: z.string(), state: z.literal("queued") }),
};
