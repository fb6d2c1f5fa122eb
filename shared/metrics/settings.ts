/** The settings of metrics, in every process that has them. */
import { z } from "zod";
import { listenerSettings } from "../listening/settings.js";
import { sharedSettings } from "../settings.js";

/** Triton's port. */
export const USUAL_PORT = 8002;
const MOST_PORT = 65_535;

/** The settings of gateways, jobs processes and workers. */
export const processSettings = sharedSettings.extend({
  ...listenerSettings,
  BATON_METRICS_PORT: z
    .string()
    .optional()
    .transform((text, context) => {
      if (text === undefined || text === "off") return text;
      const port = /^\d{1,5}$/.test(text) ? Number(text) : Infinity;
      if (port <= MOST_PORT) return port;
      context.addIssue({ code: "custom", message: `must be \`off\`, or a port from 0 to ${MOST_PORT}` });
      return z.NEVER;
    })
    .describe(
      "The port at which Prometheus finds the metrics of this process, under `/metrics`. 0: the system chooses a free " +
        `port. \`off\`: the process shows no metrics. Unset: ${USUAL_PORT} at a gateway, or a free port if that one is ` +
        "taken; `off` at other processes. `npm start` gives this port to the gateway, and free ports to the others.",
    ),
  BATON_METRICS_HOST: z.string().default("127.0.0.1").describe("The address on which the process shows its metrics."),
  BATON_METRICS_TOKEN_FILE: z
    .string()
    .optional()
    .describe(
      "The path of the file whose first line is the token with which Prometheus reads metrics, as `Authorization: " +
        "Bearer`. It also opens `/v2/fleet/targets`. Metrics on a loopback address need no token; a process that " +
        "shows them on another does not start without one.",
    ),
  BATON_METRICS_MODELS: z.coerce
    .number()
    .int()
    .min(1)
    .default(200)
    .describe("The most versions of models with metrics of their own. Further versions count as `_other` together."),
});

export type ProcessConfig = z.infer<typeof processSettings>;
