/** The settings of gRPC. */
import { z } from "zod";
import { flagSetting } from "#shared/settings.js";

/** Triton's port. */
export const USUAL_GRPC_PORT = 8_001;

export const grpcSettings = {
  BATON_GRPC_PORT: z
    .string()
    .optional()
    .transform((text, context) => {
      if (text === undefined || text === "off") return text;
      const port = /^\d{1,5}$/.test(text) ? Number(text) : Infinity;
      if (port <= 65_535) return port;
      context.addIssue({ code: "custom", message: "must be `off`, or a port from 0 to 65535" });
      return z.NEVER;
    })
    .describe(
      "The port for gRPC. 0: the system chooses a free port. `off`: the gateway speaks no gRPC. Unset: " +
        `${USUAL_GRPC_PORT}, or a free port if that one is taken.`,
    ),
  BATON_GRPC_REFLECTION: flagSetting("false").describe(
    "`true`: gRPC tells its services and messages to tools such as `grpcurl`, by the protocol of server reflection.",
  ),
  BATON_GRPC_MAX_AGE_MS: z.coerce
    .number()
    .int()
    .min(1_000)
    .max(86_400_000)
    .default(3_600_000)
    .describe(
      "How long, in ms, a connection of gRPC may last. Its client then connects anew, perhaps to another gateway; " +
        "calls that are under way end on the old connection.",
    ),
  BATON_GRPC_KEEPALIVE_MS: z.coerce
    .number()
    .int()
    .min(1_000)
    .max(2_147_483_647)
    .default(7_200_000)
    .describe(
      "Time, in ms, after which the gateway pings a connection of gRPC that was silent. The default is Triton's.",
    ),
  BATON_GRPC_KEEPALIVE_TIMEOUT_MS: z.coerce
    .number()
    .int()
    .min(1_000)
    .max(2_147_483_647)
    .default(20_000)
    .describe("How long, in ms, the gateway waits for the answer to such a ping before it cuts the connection."),
};
