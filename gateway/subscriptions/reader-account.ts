/**
 * The rights of the readers' NATS account in Baton's own account. Readers have an account of their
 * own because JetStream sends an answer to any subject that a request names. Within a single
 * account, an answer to `$JS.API.STREAM.DELETE.<stream>`, for example, would delete the stream.
 * Across accounts, an answer goes to a subject of the asking account, on which only readers listen.
 */
import { TOKEN_STREAM } from "#shared/capture/captured.js";

/** The subjects of all records. Credentials let a reader subscribe to some of these. */
const RECORDS = "baton.v1.>";

/**
 * Readers' requests to JetStream. Every account has a `$JS.API.>` of its own, so requests to
 * Baton's JetStream get another name before they leave the readers' account.
 */
const API = [
  { verb: "CONSUMER.INFO", name: "baton.jetstream.info", answers: "Singleton" },
  { verb: "CONSUMER.MSG.NEXT", name: "baton.jetstream.next", answers: "Stream" },
] as const;
const asAsked = (verb: string) => `$JS.API.${verb}.${TOKEN_STREAM}`;
const ACKNOWLEDGED = `$JS.ACK.${TOKEN_STREAM}`;

/** The subjects that Baton's account opens to the readers' account. */
export function exportsToReaders() {
  const acknowledgement = { name: "acknowledgements", subject: `${ACKNOWLEDGED}.>`, answers: "Singleton" } as const;
  const requests = API.map(({ verb, name, answers }) => ({ name, subject: `${asAsked(verb)}.*`, answers }));
  return [
    { name: "records", subject: RECORDS, type: "stream" as const },
    ...[...requests, acknowledgement].map(({ name, subject, answers }) => {
      return { name, subject, type: "service" as const, response_type: answers };
    }),
  ];
}

/** @param account the public key of Baton's account */
export function importsOfReaders(account: string) {
  const requests = API.map(({ verb, name }) => {
    return { name, subject: `${asAsked(verb)}.*`, local_subject: `${name}.*`, account, type: "service" as const };
  });
  return [
    { name: "records", subject: RECORDS, account, type: "stream" as const },
    ...requests,
    { name: "acknowledgements", subject: `${ACKNOWLEDGED}.>`, account, type: "service" as const },
  ];
}

/** Maps the readers' requests to their new names. */
export function renamedByReaders() {
  return Object.fromEntries(
    API.map(({ verb, name }) => [`${asAsked(verb)}.*`, [{ subject: `${name}.$1`, weight: 100 }]]),
  );
}

/**
 * The subjects to which the reader of a consumer publishes. NATS 2.9 checks the right to a
 * request's new name; the right to the old name does no harm.
 */
export function subjectsOfReader(consumer: string): string[] {
  const requests = API.flatMap(({ verb, name }) => [`${asAsked(verb)}.${consumer}`, `${name}.${consumer}`]);
  return [...requests, `${ACKNOWLEDGED}.${consumer}.>`];
}
