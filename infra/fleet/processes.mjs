/** How the fleet's own processes are started: the gateway and the workers, on built code, with the brokers' addresses. */
import { join } from "node:path";
import { root } from "../setup/paths.mjs";
import { stopOrder } from "./stop.mjs";

/** More than BATON_DRAIN_MS' 25 s, so that a drain ends by itself. */
const GRACE_MS = 35_000;

export function processPlans(settings, urls) {
  const env = {
    ...process.env,
    BATON_REDIS_URL: urls.redis,
    BATON_NATS_URL: urls.nats,
    BATON_HOST: settings.host,
    BATON_HTTP_PORT: String(settings.httpPort),
    BATON_MODEL_REPOSITORY: settings.models,
    ORT_DISABLE_TELEMETRY: "1", // ONNX Runtime 1.30 otherwise reports to mobile.events.data.microsoft.com
  };
  const common = { program: process.execPath, cwd: root, graceMs: GRACE_MS };
  const gateway = {
    ...common,
    name: "gateway",
    order: stopOrder.gateway,
    args: [join(root, "dist/gateway/main.js")],
    env,
    readyMessage: "gateway listening",
  };
  const workers = Array.from({ length: settings.workers }, (_, i) => ({
    ...common,
    name: `worker-${i + 1}`,
    order: stopOrder.worker,
    args: [join(root, "dist/worker/main.js")],
    env: { ...env, BATON_WORKER_NAME: `worker-${i + 1}` },
    readyMessage: "worker ready",
    diedMessage: "worker process died",
  }));
  return { gateway, workers };
}
