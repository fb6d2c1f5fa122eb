/** Every path with every method, with no body and an unknown id; every path without a tenant. */
import type { Recorder } from "../recording/recorder.js";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

const OF_A_MODEL = [
  "",
  "/ready",
  "/config",
  "/stats",
  "/infer",
  "/generate",
  "/generate_stream",
  "/jobs",
  "/schedules",
  "/sequences",
  "/sequences/5",
  "/sequences/5/fork",
  "/sequences/5/rewind",
  "/sequences/5/state",
];

const MEMORY = ["/status", "/region/r/status", "/region/r/register", "/region/r/unregister", "/unregister"];

export const PATHS = [
  "/v2",
  "/v2/health/live",
  "/v2/health/ready",
  "/v2/models/stats",
  ...["/v2/models/simple", "/v2/models/simple/versions/1"].flatMap((path) => OF_A_MODEL.map((rest) => path + rest)),
  "/v2/repository/index",
  "/v2/repository/r/index",
  ...["load", "unload"].flatMap((action) => [
    `/v2/repository/models/simple/${action}`,
    `/v2/repository/r/models/simple/${action}`,
  ]),
  "/v2/logging",
  "/v2/trace/setting",
  "/v2/models/simple/trace/setting",
  ...["system", "cuda"].flatMap((kind) => MEMORY.map((rest) => `/v2/${kind}sharedmemory${rest}`)),
  "/v2/asyncapi.json",
  ...["", "/detach", "/ws", "/events", "/stream", "/subscription"].map((rest) => `/v2/requests/none${rest}`),
  "/v2/subscriptions",
  ...["", "/none", "/none/result", "/none/retry"].map((rest) => `/v2/jobs${rest}`),
  ...["", "/none", "/none/retry"].map((rest) => `/v2/dead${rest}`),
  ...["", "/none", "/none/pause", "/none/resume"].map((rest) => `/v2/schedules${rest}`),
  ...["", "/none", "/none/rotate"].map((rest) => `/v2/webhooks${rest}`),
  "/v2/deliveries",
  "/v2/deliveries/none/replay",
  "/v2/whoami",
  ...["", "/none", "/none/rotate"].map((rest) => `/v2/keys${rest}`),
  "/v2/tickets",
  ...["", "/none"].map((rest) => `/v2/tenants${rest}`),
  "/v2/usage",
  "/v2/fleet/history",
  "/v1/models",
  "/v1/models/none",
  "/v1/completions",
  "/v1/chat/completions",
  ...["", "/none", "/none/content"].map((rest) => `/v1/files${rest}`),
  ...["", "/none", "/none/cancel"].map((rest) => `/v1/batches${rest}`),
  "/v1/anything",
];

export async function methods(api: Recorder): Promise<void> {
  for (const path of PATHS) {
    for (const method of METHODS) await api.send({ method, path });
  }
  for (const path of PATHS) await api.send({ method: "GET", path, headers: { "x-tenant": "not a tenant" } });
  for (const path of PATHS) await api.withoutTenant().post(path, "{}");
}
