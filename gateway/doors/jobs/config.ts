/**
 * The settings of the jobs process: every environment variable with its unit, default and bounds.
 */
import { z } from "zod";
import { parseSettings } from "#shared/settings.js";
import { holdsTwoBodies, serviceSettings } from "../../service/settings.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** The waits of Svix, the author of Standard Webhooks: ten attempts within three days. */
const RETRIES_MS = [5_000, 5 * MINUTE, 30 * MINUTE, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * HOUR)];
/** Least length of the board's token, in characters, so that an attacker cannot guess the token. */
const LEAST_TOKEN = 16;
const LONGEST_WAIT_MS = 7 * 24 * HOUR;

export const jobsSettings = serviceSettings
  .extend({
    BATON_WEBHOOK_RETRY_MS: z
      .string()
      .default(RETRIES_MS.join(","))
      .refine(
        (text) => parseWaits(text) !== undefined,
        "must be whole numbers of ms, comma-separated, at most a week each",
      )
      .describe(
        "The waits before the second attempt at a webhook, the third and so on, in ms, comma-separated. After the " +
          "last attempt the delivery has failed.",
      ),
    BATON_WEBHOOK_TIMEOUT_MS: z.coerce
      .number()
      .int()
      .min(100)
      .max(15_000)
      .default(15_000)
      .describe(
        "How long, in ms, an attempt at a webhook may take, from the look-up of the name to the end of the answer. A " +
          "longer attempt counts as failed.",
      ),
    BATON_DELIVERY_TTL_MS: z.coerce
      .number()
      .int()
      .min(10_000)
      .default(604_800_000)
      .describe(
        "How long, in ms, Baton keeps a delivery after its last attempt. Until then clients can look at it and " +
          "replay it.",
      ),
    BATON_DELIVERY_LIMIT: z.coerce
      .number()
      .int()
      .positive()
      .default(10_000)
      .describe(
        "The most ended deliveries of a tenant that Baton keeps; beyond that Baton deletes the oldest. With pending " +
          "deliveries there may be ten times as many; beyond that Baton gives up the oldest.",
      ),
    BATON_JOBS_ADMIN_PORT: z.coerce
      .number()
      .int()
      .min(0)
      .max(65_535)
      .optional()
      .describe(
        "The port of Bull Board, a page on which operators see the queues of BullMQ. 0: the system chooses a free " +
          "port. Unset: there is no such page.",
      ),
    BATON_JOBS_ADMIN_HOST: z.string().default("127.0.0.1").describe("The address on which Bull Board listens."),
    BATON_ADMIN_TOKEN_FILE: z
      .string()
      .optional()
      .describe("The path of the file whose first line is `BATON_ADMIN_TOKEN`, in place of that setting."),
    BATON_ADMIN_TOKEN: z
      .string()
      .min(LEAST_TOKEN, `must have ${LEAST_TOKEN} characters or more`)
      .optional()
      .describe(
        "The password for Bull Board, of 16 characters or more. The user name may be any. Required with " +
          "BATON_JOBS_ADMIN_PORT.",
      ),
    BATON_HEALTH_FILE: z
      .string()
      .optional()
      .describe(
        "A file that the jobs process touches every 2 s while Redis answers. A health check looks at the age of the " +
          "file. Unset: there is no such file.",
      ),
  })
  .refine(holdsTwoBodies.holds, holdsTwoBodies.otherwise)
  .refine(({ BATON_JOBS_ADMIN_PORT: port, BATON_ADMIN_TOKEN: token }) => port === undefined || token !== undefined, {
    path: ["BATON_ADMIN_TOKEN"],
    message: "must be set where BATON_JOBS_ADMIN_PORT is",
  });

export type JobsConfig = z.infer<typeof jobsSettings>;

/**
 * Reads the settings.
 * @throws Error naming every variable that is wrong
 */
export function jobsConfig(env: NodeJS.ProcessEnv): JobsConfig {
  return parseSettings(jobsSettings, env);
}

/** @returns undefined if the text is not a list of waits */
export function parseWaits(text: string): readonly number[] | undefined {
  const waits = text.split(",").map((wait) => (/^\s*\d{1,9}\s*$/.test(wait) ? Number(wait) : Number.NaN));
  return waits.every((wait) => wait <= LONGEST_WAIT_MS) ? waits : undefined;
}
