/**
 * `/v2/asyncapi.json`: the public contract of the subjects on NATS. The schema comes from the
 * contract by which workers write, and the addresses come from the code that names subjects.
 */
import { z } from "zod";
import { tokenRecord } from "#shared/contract/generation.js";
import { TOKEN_STREAM } from "#shared/capture/captured.js";
import { ID_HEADER } from "#shared/nats/connect.js";
import { labelledSubject, labelToken, tokenSubject } from "#shared/queue/keys.js";
import { jsonTextReply } from "../../formats/reply.js";
import type { ApiDocument } from "../endpoint/document.js";
import { endpointsOf } from "../endpoint/endpoint.js";
import { offsetOf } from "./durable-form.js";

const endpoint = endpointsOf<ApiDocument>("none");

/** The document says nothing of any tenant, so its readers need not name theirs. */
export const asyncApiEndpoints = [
  endpoint({
    method: "GET",
    path: "/v2/asyncapi.json",
    does: "Describes the subjects on NATS in AsyncAPI 3.0.",
    answers: { 200: { says: "The document.", mediaType: "application/json" } },
    handle: (_, document) => jsonTextReply(document.text),
  }),
];

const parameters = {
  tenant: "Whose the request is: `default` where the deployment knows no tenants.",
  model: "The model's name, each of its dots written `%2E`.",
  request: "The first part of the request's public id, which is `<request>.<bucket>.<model>`.",
};

const label =
  "A label of a job, as `team:blue`: the first 22 characters of the base64url form of the SHA-256 digest of that text " +
  `in UTF-8. That of \`team:blue\` is \`${labelToken("team", "blue")}\`.`;

const reading = `The records of one request, each published after it is in the request's log, which is the truth.
Records come in the order of their indexes. They may come twice: when another worker goes on with a
stream, and when the connection of a worker to NATS was lost, records are published again from one
that was published before on. So a reader

1. takes the message whose index is the next one, and drops those below it, which it has;
2. drops messages that have another subject than it subscribed to, or are no record by this schema:
   only workers and gateways may publish here, but a reader may ask JetStream to send what it answers
   him to any subject that readers listen to;
3. reads the log from its next index on when a message has a greater one (it subscribed late, or was
   away), when a message is empty (its record is larger than a message may be), and when none has
   come for a second and the last was not \`final\`. The offset of index 7 is \`${offsetOf(7)}\`:
   \`GET /v2/requests/<id>/stream?offset=${offsetOf(7)}\`.

NATS itself keeps nothing. Where the deployment captures records (BATON_CAPTURE_TTL_MS), the
JetStream stream \`${TOKEN_STREAM}\` keeps them, by the same rules and without a gap: the header
\`${ID_HEADER}\` of each is \`<request>.<index>\`. \`POST /v2/requests/<id>/subscription\` answers with
credentials for the subject and with a consumer that begins at an index, so such a reader needs no
other way to the log, nor does one that was there from the first record on, unless NATS was away.

Within \`v1\` members may be added to a record; none is removed or changes its meaning. Subjects may be
subscribed to with wildcards, as \`baton.v1.default.tale-gpt.*\`.`;

const readingLabels = `The records of the requests that run jobs with one label, where the deployment makes subscriptions
(BATON_NATS_SIGNING_SEED): each record that is published on the subject of such a request is
published here as well, for each label of the job. What is said of the request's own subject holds
here, for each request by itself. Which one a record is of is told by the last token of the subject;
\`GET /v2/jobs?label=team:blue\` has the public id of each as \`request_id\`. The header \`${ID_HEADER}\`
is \`<request>.<index>.<label>\`.

\`POST /v2/subscriptions\` with \`{"label": "team:blue"}\` answers with credentials for the subjects of
that label. Whoever subscribes to \`baton.v1.>\` gets each record of a labelled job more than once.`;

/** @param version of this server */
export function asyncApi(version: string) {
  const { $schema: _, ...schema } = z.toJSONSchema(tokenRecord, { io: "input", target: "draft-7" });
  const names = { tenant: "{tenant}", model: "{model}", request: "{request}", bucket: 0 };
  const messages = { record: { $ref: "#/components/messages/record" }, look: { $ref: "#/components/messages/look" } };
  return {
    asyncapi: "3.0.0",
    info: {
      title: "Baton: streams on NATS",
      version,
      description: "The records of language models' answers, as they are written, for any NATS client.",
    },
    defaultContentType: "application/json",
    channels: {
      records: {
        address: tokenSubject(names),
        title: "The records of one request",
        description: reading,
        parameters: describe(parameters),
        messages,
      },
      labelledRecords: {
        address: labelledSubject("{label}", names),
        title: "The records of one request, under a label of its job",
        description: readingLabels,
        parameters: describe({
          tenant: parameters.tenant,
          label,
          model: parameters.model,
          request: parameters.request,
        }),
        messages,
      },
    },
    operations: {
      sendRecords: {
        action: "send",
        channel: { $ref: "#/channels/records" },
        summary: "A worker publishes each record that it has committed.",
      },
      sendLabelledRecords: {
        action: "send",
        channel: { $ref: "#/channels/labelledRecords" },
        summary: "It does so once more for each label of the job that the request runs.",
      },
    },
    components: {
      messages: {
        record: {
          title: "A record",
          summary: "One step of an answer: its index, one token of each choice, and whether it is the last.",
          contentType: "application/json",
          headers: {
            type: "object",
            properties: {
              [ID_HEADER]: {
                type: "string",
                description: "Where records are captured: `<request>.<index>`, and under a label `.<label>` behind it.",
              },
            },
          },
          payload: { schemaFormat: "application/schema+json;version=draft-07", schema },
        },
        look: {
          title: "A look into the log",
          summary: "An empty message: a record is in the log that is larger than a message may be.",
          payload: { type: "string", maxLength: 0 },
        },
      },
    },
  };
}

function describe(parameters: Readonly<Record<string, string>>) {
  return Object.fromEntries(Object.entries(parameters).map(([name, description]) => [name, { description }]));
}
