/**
 * The order of the folders, from the bottom to the top. A file imports from its own folder and from
 * folders above its own line here, never from a folder below. So a reader of the folders in this
 * order has read all imports of a folder before it. ARCHITECTURE.md shows the graph that follows.
 */
export const order = [
  "shared/model",
  "shared",
  "shared/json",
  "shared/contract",
  "shared/nats",
  "shared/redis",
  "shared/queue",
  "shared/queue/admission",
  "shared/queue/work",
  "shared/queue/work/read",
  "shared/queue/work/commit",
  "shared/queue/work/streams",
  "shared/queue/work/liveness",
  "shared/queue/work/upkeep",
  "shared/queue/sequences",
  "shared/queue/jobs",
  "shared/queue/dead",
  "shared/queue/webhooks",
  "shared/queue/schedules",
  "shared/queue/files",
  "shared/queue/batches",
  "shared/capture",

  "gateway/fleet",
  "gateway/stream",
  "gateway/outcomes",
  "gateway/admission",
  "gateway/http",
  "gateway/generation",
  "gateway/kserve",
  "gateway/kserve/http",
  "gateway/openai",
  "gateway/requests",
  "gateway/sequences",
  "gateway/webhooks",
  "gateway/job-paths",
  "gateway/schedules",
  "gateway/files",
  "gateway/batches",
  "gateway/subscriptions",
  "gateway",
  "gateway/jobs/batch-runs",
  "gateway/jobs",

  "worker/thread",
  "worker/onnx",
  "worker/devices",
  "worker/tokenizer",
  "worker/models/pbtxt",
  "worker/models/validate",
  "worker/models",
  "worker/sequence",
  "worker/lane",
  "worker/liveness",
  "worker/upkeep",
  "worker/engine/sampling",
  "worker/engine/text",
  "worker/engine",
  "worker/tensors",
  "worker/tensors/thread",
  "worker/streams",
  "worker",

  "cli/terminal",
  "cli/client",
  "cli/verbs",
  "cli",
];

/**
 * Folders with an order and a place in the graph. In other folders the check refuses only cycles.
 */
export const parts = ["shared", "gateway", "worker", "cli"];
