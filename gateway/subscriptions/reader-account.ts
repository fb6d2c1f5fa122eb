/**
 * What the account of readers has of Baton's own account in NATS. They are two accounts, because
 * JetStream sends its answers wherever a request says: to `$JS.API.STREAM.DELETE.<stream>`, for
 * one, and in one account that would delete the stream. Across accounts an answer goes to a subject
 * of the account that has asked, where nobody listens but readers.
 */
import { TOKEN_STREAM } from "#shared/capture/captured.js";

/** The subjects of all records, which readers may be let in on. */
const RECORDS = "baton.v1.>";

/**
 * What readers ask JetStream for. Every account has `$JS.API.>` of its own, so requests for ours
 * are given another name before they leave theirs.
 */
const API = [
  { verb: "CONSUMER.INFO", name: "baton.jetstream.info", answers: "Singleton" },
  { verb: "CONSUMER.MSG.NEXT", name: "baton.jetstream.next", answers: "Stream" },
] as const;
const asAsked = (verb: string) => `$JS.API.${verb}.${TOKEN_STREAM}`;
const ACKNOWLEDGED = `$JS.ACK.${TOKEN_STREAM}`;

/** What Baton's account lets the other one have. */
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

/** Which requests of readers get which name. */
export function renamedByReaders() {
  return Object.fromEntries(
    API.map(({ verb, name }) => [`${asAsked(verb)}.*`, [{ subject: `${name}.$1`, weight: 100 }]]),
  );
}

/**
 * The subjects to which the reader of a consumer publishes. NATS 2.9 looks at a request's new name;
 * to be allowed the old one does no harm.
 */
export function subjectsOfReader(consumer: string): string[] {
  const requests = API.flatMap(({ verb, name }) => [`${asAsked(verb)}.${consumer}`, `${name}.${consumer}`]);
  return [...requests, `${ACKNOWLEDGED}.${consumer}.>`];
}
