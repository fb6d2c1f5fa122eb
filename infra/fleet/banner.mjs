/**
 * A newcomer's first screen when all is up: Baton's URL, and three commands to paste. A test runs
 * the commands, so they work.
 */

/**
 * @param {object} fleet
 * @param {string} fleet.url
 * @param {string | undefined} fleet.keyFile the file with the operator's key, if the gateway asks
 *   for keys
 * @param {readonly string[]} fleet.models the names of the models to serve
 * @param {readonly import("./bring-up.mjs").UnreadyModel[]} fleet.unready the models that no worker
 *   serves
 * @param {number} fleet.workers
 * @param {{ redis: string, nats: string }} fleet.brokers version and place of each
 * @param {string} fleet.logs
 */
export function banner({ url, keyFile, models, unready, workers, brokers, logs }) {
  const served = models.filter((name) => !unready.some((model) => model.name === name));
  return [
    "",
    `Baton is up: ${url}`,
    `  models   ${served.join(", ")}`,
    `  fleet    1 gateway, 1 jobs process, ${workers} worker${workers === 1 ? "" : "s"}; Redis ${brokers.redis}; NATS ${brokers.nats}`,
    keyFile === undefined
      ? "  keys     none: all of this machine may use it; BATON_AUTH=keys npm start asks for keys (docs/keys.md)"
      : `  keys     the operator's is in ${keyFile}; npm run keys -- create --tenant NAME makes others`,
    `  logs     ${logs}`,
    ...unready.map(({ name, reason }) => `  ${name} is not served: ${reason ?? `see ${logs}/worker-1.log`}`),
    "",
    "Paste these into another terminal:",
    "",
    ...firstCommands(url, served, keyFile).flatMap(({ about, commands }) => [
      `  # ${about}`,
      ...commands.map((command) => `  ${command}`),
      "",
    ]),
    "Ctrl-C drains and stops everything.",
    "",
  ].join("\n");
}

const STORY = "Write a short story about a cat who discovers a secret portal.";

/**
 * Three commands for the given models; a command may take two lines.
 *
 * @param {string} url
 * @param {readonly string[]} models
 * @param {string} [keyFile] the file with a key, if the gateway asks for keys
 * @returns {{ about: string, commands: string[] }[]}
 */
export function firstCommands(url, models, keyFile) {
  const key = keyFile === undefined ? "" : ` -H "Authorization: Bearer $(cat '${keyFile}')"`;
  const tale = { model: "tale-gpt", prompt: STORY, max_tokens: 200, stream: true };
  const row = Array.from({ length: 16 }, (_, i) => i);
  const ones = row.map(() => 1);
  const known = [
    {
      model: "tale-gpt",
      about: "a language model tells a tale, token by token; kill a worker meanwhile, and it goes on",
      commands: [`curl -sN${key} ${url}/v1/completions -d '${JSON.stringify(tale)}'`],
    },
    {
      model: "accumulate",
      about: "a sequence of two steps: the model remembers the 30 and answers 42, whichever worker takes the second",
      commands: [
        infer(key, url, "accumulate", { INPUT: [30] }, { sequence_id: 42, sequence_start: true }),
        infer(key, url, "accumulate", { INPUT: [12] }, { sequence_id: 42, sequence_end: true }),
      ],
    },
    {
      model: "simple",
      about: "a model without memory adds and subtracts",
      commands: [infer(key, url, "simple", { INPUT0: row, INPUT1: ones })],
    },
  ].filter(({ model }) => models.includes(model));
  const fleet = { about: "who serves what, and what is queued", commands: [`curl -s${key} ${url}/v2/fleet; echo`] };
  const metadata = models
    .filter((name) => !known.some(({ model }) => model === name))
    .map((name) => ({
      about: `what ${name} takes and gives`,
      commands: [`curl -s${key} ${url}/v2/models/${name}; echo`],
    }));
  return [...known.slice(0, 2), fleet, ...metadata].slice(0, 3);
}

/**
 * @param {string} key the option of curl with the key, or ""
 * @param {string} url
 * @param {string} model
 * @param {Record<string, number[]>} inputs INT32 tensors of a single row, by name
 * @param {Record<string, number | boolean>} [parameters]
 */
function infer(key, url, model, inputs, parameters) {
  const tensors = Object.entries(inputs).map(([name, data]) => ({
    name,
    datatype: "INT32",
    shape: [1, data.length],
    data,
  }));
  return `curl -s${key} ${url}/v2/models/${model}/infer -d '${JSON.stringify({ parameters, inputs: tensors })}'; echo`;
}
