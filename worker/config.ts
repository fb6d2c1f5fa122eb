/** The settings of a worker process: every environment variable, its unit, default and bounds. */
import { z } from "zod";
import { parseSettings, sharedSettings } from "#shared/settings.js";
import { tolerances } from "./onnx/agreement.js";
import { parseProviders, providerNames } from "./onnx/providers.js";

export const workerSettings = sharedSettings.extend({
  BATON_MODEL_REPOSITORY: z
    .string()
    .default("infra/models")
    .transform((paths) => paths.split(":").filter((path) => path !== ""))
    .describe("folders of models, colon-separated"),
  BATON_MODELS: z
    .string()
    .optional()
    .transform((names) => names?.split(",").map((name) => name.trim()))
    .describe("serve only these models, comma-separated; all when unset"),
  BATON_WORKER_NAME: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,64}$/)
    .default("worker")
    .describe("shown in the fleet; every start adds a random id"),
  BATON_HEALTH_FILE: z
    .string()
    .optional()
    .describe("a file that is touched while Redis answers, twice a second, for a health check that looks at its age"),
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
      `what models run on, the preferred one first: ${providerNames.join(", ")}; the first that is there is taken, and ` +
        "with none of them the worker does not start",
    ),
  BATON_GPU: z.coerce
    .number()
    .int()
    .min(0)
    .optional()
    .describe(
      "the number of the GPU that this worker takes where a model's `gpus` leave it the choice; the first when unset",
    ),
  BATON_GPU_TOLERANCE: z.coerce
    .number()
    .min(0)
    .max(1)
    .optional()
    .describe(
      "by how much a GPU's answers may differ from the CPU's when a model is loaded, as a share of a tensor's largest " +
        `number; ${tolerances.tensor} when unset, of half precision ${tolerances.half}, of a generator's logits ${tolerances.logits}`,
    ),
  BATON_INTRA_OP_THREADS: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .describe("threads that compute one operator; 0 takes all cores but one"),
  BATON_STATE_CACHE_BYTES: z.coerce
    .number()
    .int()
    .min(0)
    .default(268_435_456)
    .describe("memory for recent states of sequences, per model"),
  BATON_HIBERNATE_AFTER_MS: z.coerce
    .number()
    .int()
    .min(100)
    .default(600_000)
    .describe("how long a sequence has been idle when its state goes to BATON_HIBERNATE_DIR"),
  BATON_GENERATOR_SLOTS: z.coerce
    .number()
    .int()
    .positive()
    .default(64)
    .describe(
      "most choices that a generator makes at once, other requests wait in the queue; it takes over up to twice as many from dead workers",
    ),
  BATON_KV_CACHE_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(1_073_741_824)
    .describe("memory for cached keys and values, per generator"),
  BATON_PREFILL_TOKENS: z.coerce
    .number()
    .int()
    .positive()
    .default(256)
    .describe("prompt tokens that one iteration of a generator computes beside its running streams"),
  BATON_CONVERSATION_IDLE_MS: z.coerce
    .number()
    .int()
    .positive()
    .default(3_600_000)
    .describe("how long a generator's conversation is kept between its turns"),
  BATON_DEAD_BYTES: z.coerce
    .number()
    .int()
    .positive()
    .default(16_777_216)
    .describe("what is kept of requests that were set aside, per model: the newest, of each at most 4 KiB"),
  BATON_DEAD_TTL_MS: z.coerce
    .number()
    .int()
    .min(60_000)
    .default(604_800_000)
    .describe("how long a request that was set aside is kept; twice that where another one comes meanwhile"),
  BATON_MAX_RUNS_ALONE: z.coerce
    .number()
    .int()
    .min(1)
    .max(10)
    .default(3)
    .describe("how often a request may run by itself and end its worker before it is set aside"),
});

export type WorkerConfig = z.infer<typeof workerSettings>;

/** @throws Error naming every variable that is wrong. */
export function workerConfig(env: NodeJS.ProcessEnv): WorkerConfig {
  return parseSettings(workerSettings, env);
}
