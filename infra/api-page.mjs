/**
 * The generated parts of docs/api.md: the endpoints of each noun, and the refusals that many
 * endpoints share.
 */

/**
 * @import { Answer, Endpoint } from "../gateway/api/endpoint/endpoint.js"
 * @import { Group } from "../gateway/endpoints.js"
 * @import { Schema } from "../gateway/api/endpoint/parameters.js"
 * @typedef {readonly string[]} Codes
 * @typedef {object} Shown the parts of a schema that the page shows
 * @property {string | string[]} [type]
 * @property {string} [format]
 * @property {string} [description]
 * @property {number} [minimum]
 * @property {number} [maximum]
 * @property {string | number} [default]
 * @property {string[]} [enum]
 * @property {Shown} [items]
 * @property {Shown[]} [anyOf]
 * @typedef {typeof import("../gateway/api/endpoint/refusals.js")} Refusals
 */

/** The pages of docs/ that show the use of a noun. */
const PAGES = new Map([
  ["Triton's paths", "[models](models.md), [sequences](sequences.md), [streams](streams.md)"],
  ["Fleet", "[operations](operations.md#health-and-queues)"],
  ["Requests and their streams", "[streams](streams.md)"],
  ["Subscriptions", "[reading from NATS](streams.md#reading-from-nats)"],
  ["Sequences", "[managing sequences](sequences.md#managing-sequences)"],
  ["Jobs", "[jobs](jobs.md)"],
  ["Schedules", "[schedules](jobs.md#schedules)"],
  ["Webhooks", "[webhooks](webhooks.md)"],
  ["Deliveries", "[webhooks](webhooks.md)"],
  ["Batches", "[batches](batches.md)"],
  ["Files", "[batches](batches.md)"],
  ["Keys", "[keys](keys.md)"],
  ["Tickets", "[a page in a browser](keys.md#a-page-in-a-browser)"],
  ["Tenants", "[keys](keys.md)"],
  ["OpenAI's paths", "[streams](streams.md)"],
  ["Console", "[the console](console.md)"],
]);

/** The part of a path that names a version of the model. */
const VERSION = "/versions/:version{[0-9]+}";

/** What an entry calls the refusals of these groups. */
const groups = (/** @type {Refusals} */ { queueRefusals, runFailures }) =>
  new Map([
    ["_queue_", queueRefusals],
    ["_run_", runFailures],
  ]);

/**
 * @param {Refusals} refusals
 * @returns {string} Markdown
 */
export function refusalList(refusals) {
  const { ofEveryEndpoint, ofBodies } = refusals;
  return [
    `- every request: ${codes(ofEveryEndpoint)}`,
    `- a request with a body: ${codes(ofBodies)}`,
    ...[...groups(refusals)].map(([name, members]) => `- ${name}: ${codes(members)}`),
  ].join("\n");
}

/**
 * @param {readonly Group[]} all
 * @param {Refusals} refusals
 * @returns {string} Markdown: a section for each noun, with an entry for each endpoint
 */
export function endpointSections(all, refusals) {
  /** @type {Map<string, Endpoint[]>} */
  const nouns = new Map();
  for (const { noun, endpoints } of all) nouns.set(noun, [...(nouns.get(noun) ?? []), ...endpoints]);
  return [...nouns]
    .flatMap(([noun, endpoints]) => {
      const pages = PAGES.get(noun);
      return [`## ${noun}`, ...(pages === undefined ? [] : [`Examples: ${pages}.`]), entries(endpoints, refusals)];
    })
    .join("\n\n");
}

/**
 * Endpoints that differ only in method and path share an entry.
 *
 * @param {readonly Endpoint[]} endpoints
 * @param {Refusals} refusals
 */
function entries(endpoints, refusals) {
  /** @type {Map<string, Endpoint[]>} */
  const byText = new Map();
  for (const endpoint of endpoints) {
    const text = textOf(endpoint, refusals);
    byText.set(text, [...(byText.get(text) ?? []), endpoint]);
  }
  return [...byText].map(([text, same]) => `- ${requestsOf(same)} ${text}`).join("\n");
}

/** @param {readonly Endpoint[]} endpoints */
function requestsOf(endpoints) {
  /** @type {Map<string, Set<string>>} */
  const methods = new Map();
  const hasVersion = endpoints.some(({ path }) => path.includes(VERSION));
  for (const { method, path } of endpoints) {
    const shown = path
      .replace(VERSION, "")
      .replaceAll(/:(\w+)/g, "<$1>")
      .replace("<model>", hasVersion ? "<model>[/versions/<version>]" : "<model>");
    methods.set(shown, (methods.get(shown) ?? new Set()).add(method));
  }
  return [...methods].map(([path, names]) => `**\`${[...names].join(", ")} ${path}\`**`).join(", ");
}

/**
 * @param {Endpoint} endpoint
 * @param {Refusals} refusals
 */
function textOf(endpoint, refusals) {
  const { does, query = {}, members = {}, body, mayBeEmpty = false } = endpoint;
  const given = Object.entries(members).map(([name, { schema, isRequired = false }]) =>
    described(name, schema, isRequired ? "required" : undefined),
  );
  const asked = Object.entries(query).map(([name, { schema, says, repeats = false }]) =>
    described(name, schema, says, repeats ? "may come several times" : undefined),
  );
  const own = grouped(endpoint.refusals ?? [], refusals);
  return [
    `(${rightOf(endpoint)}${apiOf(endpoint)}): ${does}`,
    ...(asked.length > 0 ? [`_Query_: ${asked.join("; ")}.`] : []),
    ...(given.length > 0 ? [`_Body_${mayBeEmpty ? ", may be absent" : ""}: ${given.join("; ")}.`] : []),
    ...(body === undefined ? [] : [`_Body_${mayBeEmpty ? ", may be absent" : ""}: \`${body}\`.`]),
    ...Object.entries(endpoint.answers).map(([status, answer]) => `_${status}_: ${answerText(answer)}`),
    ...(own.length > 0 ? [`_Refusals_: ${own.join(", ")}.`] : []),
  ].join(" ");
}

/**
 * What a caller must be allowed to do.
 *
 * @param {Endpoint} endpoint
 */
function rightOf({ right, otherRight = "read", open, isTenantOptional = false }) {
  if (right === "any") return "any key";
  if (right !== undefined) return `\`${right}\`${isTenantOptional ? ", or no tenant" : ""}`;
  return `no tenant; a key needs \`${otherRight}\`${open === undefined ? "" : `; open as \`${open}\``}`;
}

/**
 * The API that an operator may restrict.
 *
 * @param {Endpoint} endpoint
 */
function apiOf({ api }) {
  return api === "none" ? "" : `; API _${api}_`;
}

/** @param {Answer} answer */
function answerText(answer) {
  const types = "mediaType" in answer ? [answer.mediaType].flat() : [];
  const named = types.filter((type) => !["*/*", "application/json"].includes(type)).map((type) => `\`${type}\``);
  return named.length === 0 ? answer.says : `${answer.says.replace(/\.$/, "")} (${named.join(", ")}).`;
}

/**
 * @param {string} name
 * @param {Schema} schema
 * @param {(string | undefined)[]} notes
 */
function described(name, schema, ...notes) {
  const { default: usual, ...shown } = /** @type {Shown} */ (schema);
  const said = [kindOf(shown), shown.description, ...notes, ...(usual === undefined ? [] : [`by default ${usual}`])]
    .filter((note) => note !== undefined && note !== "")
    .map((note) => note?.replace(/\.$/, "").replace(/^[A-Z](?=[a-z ])/, (first) => first.toLowerCase()));
  return said.length === 0 ? `\`${name}\`` : `\`${name}\` (${said.join("; ")})`;
}

/**
 * @param {Shown} schema
 * @returns {string} "" for a text without a form that a word names
 */
function kindOf({ type = "string", format, minimum, maximum, items = {}, enum: values, anyOf, description }) {
  if (values !== undefined) return values.map((one) => `\`${one}\``).join(", ");
  if (type === "array") return `list of ${kindOf(items)}`;
  if (format === "uri") return "URL";
  if (description === undefined && anyOf !== undefined) return anyOf.map((one) => kindOf(one) || "text").join(" or ");
  if (type === "string") return "";
  const least = minimum === undefined ? "" : ` from ${minimum}`;
  return `${[type].flat().join(" or ")}${least}${maximum === undefined ? "" : ` to ${maximum}`}`;
}

/**
 * @param {Codes} own
 * @param {Refusals} refusals
 */
function grouped(own, refusals) {
  const whole = [...groups(refusals)].filter(([, members]) => members.every((code) => own.includes(code)));
  const rest = own.filter((code) => !whole.some(([, members]) => members.some((member) => member === code)));
  return [...rest.map((code) => `\`${code}\``), ...whole.map(([name]) => name)];
}

/** @param {Codes} members */
function codes(members) {
  return members.map((code) => `\`${code}\``).join(", ");
}
