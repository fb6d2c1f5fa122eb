/**
 * What each kind of process may do in NATS: a user for each role in Baton's own account. A star
 * stands for a whole token of a subject. Each role has an inbox of its own, so that no role hears
 * the answers for another. `npm run check:house` compares the lists with the subjects in the code
 * of each process (`infra/checks/roles.mjs`).
 */

export type NatsRole = "gateway" | "worker" | "jobs";

interface Rights {
  readonly publish: readonly string[];
  /** Subjects that `publish` allows, and that this role may not use. */
  readonly never: readonly string[];
  /** Beside the role's inbox. */
  readonly subscribe: readonly string[];
}

/** The records of all streams. */
const RECORDS = "baton.v1.>";

/** Files in JetStream, whose bucket the deployment names, and the JetStream stream of records. */
const OF_SERVICES = [
  "$JS.API.DIRECT.GET.>",
  "$JS.API.STREAM.CREATE.*",
  "$JS.API.STREAM.INFO.*",
  "$JS.API.STREAM.MSG.GET.BATON_TOKENS",
  "$JS.API.STREAM.PURGE.*",
  "$JS.API.STREAM.UPDATE.BATON_TOKENS",
  "$O.*.C.*",
  "$O.*.M.*",
];

export const natsRights: Readonly<Record<NatsRole, Rights>> = {
  gateway: {
    publish: [
      "baton.clients",
      RECORDS,
      ...OF_SERVICES,
      "$JS.API.CONSUMER.*.BATON_TOKENS",
      "$JS.API.CONSUMER.*.BATON_TOKENS.>",
      "$JS.API.CONSUMER.DURABLE.CREATE.BATON_TOKENS.*",
    ],
    never: ["$JS.API.STREAM.PURGE.BATON_TOKENS"],
    subscribe: ["baton.clients", "baton.reply.*", RECORDS],
  },
  worker: {
    // A worker asks which record of a request JetStream has last, and then publishes the next.
    publish: ["baton.graves", "baton.reply.*", RECORDS, "$JS.API.STREAM.MSG.GET.BATON_TOKENS"],
    never: [],
    subscribe: ["baton.graves"],
  },
  jobs: {
    publish: ["baton.clients", RECORDS, ...OF_SERVICES],
    never: ["$JS.API.STREAM.CREATE.BATON_TOKENS", "$JS.API.STREAM.PURGE.BATON_TOKENS"],
    subscribe: ["baton.clients", "baton.reply.*", RECORDS],
  },
};
