/** `/v2/settings`: the settings and the connections with which a gateway runs. */
import { z } from "zod";
import { jsonReply } from "../formats/reply.js";
import type { ProcessSettings } from "../service/process-settings.js";
import { endpointsOf } from "./endpoint/endpoint.js";

const endpoint = endpointsOf<ProcessSettings>("none");

export const settingsShape = () =>
  z.strictObject({
    settings: z.array(
      z.strictObject({
        name: z.string(),
        value: z.string().nullable(),
        default: z.string().nullable(),
        given: z.boolean(),
      }),
    ),
    connections: z.strictObject({ redis: z.boolean(), nats: z.boolean() }),
  });

export const settingsEndpoints = [
  endpoint({
    method: "GET",
    path: "/v2/settings",
    right: "operator",
    isTenantOptional: true,
    does: "Shows the settings and the connections of this gateway. The value of a secret is `set`, or null.",
    answers: {
      200: {
        says: "Every setting, whether or not the environment gives it; and whether Redis and NATS take commands.",
        shape: settingsShape,
      },
    },
    refusals: ["forbidden"],
    handle: ({ caller }, settings) => jsonReply(settings.show(caller)),
  }),
];
