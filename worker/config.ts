/** The settings of a worker process: every environment variable, its unit, default and bounds. */
import { z } from "zod";
import { processSettings } from "#shared/metrics/settings.js";
import { parseSettings } from "#shared/settings.js";
import { tolerances } from "./onnx/agreement.js";
import { parseProviders, providerNames } from "./onnx/providers.js";

export const workerSettings = processSettings.extend({
  BATON_MODEL_REPOSITORY: z
    .string()
    .default("infra/models")
    .transform((paths) => paths.split(":").filter((path) => path !== ""))
    .describe("The folders of models, colon-separated."),
  BATON_MODELS: z
    .string()
    .optional()
    .transform((names) => names?.split(",").map((name) => name.trim()))
    .describe("The names of the models to serve, comma-separated. Unset: the worker serves all models of its folders."),
  BATON_MODEL_CONTROL: z
    .enum(["none", "poll", "explicit"])
    .default("none")
    .describe(
      "How the worker's models change. `none`: only with a restart. `poll`: the worker looks at its folders again and " +
        "again, and loads the models anew if they have changed. `explicit`: clients load and unload models, for all workers of the fleet.",
    ),
  BATON_REPOSITORY_POLL_MS: z.coerce
    .number()
    .int()
    .min(100)
    .default(15_000)
    .describe("With `BATON_MODEL_CONTROL=poll`: the time between two looks at the folders, in ms."),
  BATON_LOAD_MODELS: z
    .string()
    .default("")
    .transform((names) =>
      names
        .split(",")
        .map((name) => name.trim())
        .filter((name) => name !== ""),
    )
    .describe(
      "With `BATON_MODEL_CONTROL=explicit`: the models that the worker loads until a client loads or unloads them, " +
        "comma-separated; `*` for all.",
    ),
  BATON_WORKER_NAME: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,64}$/)
    .default("worker")
    .describe("The worker's name in the fleet. Every start adds a random id."),
  BATON_HEALTH_FILE: z
    .string()
    .optional()
    .describe(
      "A file that the worker touches twice a second while Redis answers. A health check looks at the age of the " +
        "file. Unset: there is no such file.",
    ),
  BATON_PROVIDERS: z
    .string()
    .default("cpu")
    .transform((text, context) => {
      const parsed = parseProviders(text);
      if ("names" in parsed) return parsed.names;
      context.addIssue({ code: "custom", message: parsed.fault });
      return z.NEVER;
    })
    .describe(
      `The devices for models, the preferred device first: ${providerNames.join(", ")}. The worker takes the first ` +
        "device that the machine has. With none of them the worker does not start.",
    ),
  BATON_GPU: z.coerce
    .number()
    .int()
    .min(0)
    .optional()
    .describe(
      "The number of the GPU that this worker takes if a model's `gpus` leave the choice. Unset: the worker takes " +
        "the first GPU.",
    ),
  BATON_GPU_TOLERANCE: z.coerce
    .number()
    .min(0)
    .max(1)
    .optional()
    .describe(
      "How far a GPU's answers may differ from the CPU's, as a share of a tensor's largest number. The worker " +
        "compares both when it loads a model, and does not run the model on the GPU if they differ by more. Unset: " +
        `${tolerances.tensor}; for half precision ${tolerances.half}; for the logits of a generator ` +
        `${tolerances.logits}.`,
    ),
  BATON_INTRA_OP_THREADS: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .describe("The number of threads that compute one operator. 0: all cores but one."),
  BATON_STATE_CACHE_BYTES: z.coerce
    .number()
    .int()
    .min(0)
    .default(268_435_456)
    .describe(
      "The most bytes of memory for recent states of sequences, per model. Beyond that the worker reads older " +
        "states from Redis again.",
    ),
  BATON_HIBERNATE_AFTER_MS: z.coerce
    .number()
    .int()
    .min(100)
    .default(600_000)
    .describe("How long, in ms, a sequence is idle before its state moves to BATON_HIBERNATE_DIR."),
  BATON_GENERATOR_SLOTS: z.coerce
    .number()
    .int()
    .positive()
    .default(64)
    .describe(
      "The most choices that a generator makes at once. Further requests wait in the queue. The worker takes over " +
        "up to twice as many from dead workers.",
    ),
  BATON_KV_CACHE_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(1_073_741_824)
    .describe(
      "The most bytes of memory for cached keys and values, per generator. While the memory is full, further " +
        "requests wait.",
    ),
  BATON_PREFILL_TOKENS: z.coerce
    .number()
    .int()
    .positive()
    .default(256)
    .describe(
      "The number of prompt tokens that an iteration of a generator computes beside its running streams. A longer " +
        "prompt takes several iterations.",
    ),
  BATON_CONVERSATION_IDLE_MS: z.coerce
    .number()
    .int()
    .positive()
    .default(3_600_000)
    .describe(
      "How long, in ms, Baton keeps a generator's conversation between two turns. After that the conversation has " +
        "ended.",
    ),
  BATON_DEAD_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(16_777_216)
    .describe(
      "The most bytes that Baton keeps of requests that were set aside, per model: the newest requests, with at " +
        "most 4 KiB of each.",
    ),
  BATON_DEAD_TTL_MS: z.coerce
    .number()
    .int()
    .min(60_000)
    .default(604_800_000)
    .describe(
      "How long, in ms, Baton keeps a request that was set aside. If another request follows, Baton may keep it " +
        "for twice this time.",
    ),
  BATON_MAX_RUNS_ALONE: z.coerce
    .number()
    .int()
    .min(1)
    .max(10)
    .default(3)
    .describe(
      "How many runs of a request without other requests may end their workers. After that Baton sets the request " +
        "aside.",
    ),
  BATON_TIMINGS: z
    .enum(["true", "false"])
    .default("true")
    .transform((text) => text === "true")
    .describe(
      "`true`: outcomes say how long their requests waited and ran, and in which worker, for the gateways' access " +
        "logs. `false`: outcomes have up to 40 bytes less.",
    ),
});

export type WorkerConfig = z.infer<typeof workerSettings>;

/** @throws Error naming every variable that is wrong. */
export function workerConfig(env: NodeJS.ProcessEnv): WorkerConfig {
  return parseSettings(workerSettings, env);
}
