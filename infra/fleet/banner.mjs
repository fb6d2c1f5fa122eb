/** What a newcomer sees when all is up: where it is, and three commands to paste. They are run by a test, so they work. */

export function banner({ url, models, unready, settings, brokers, logs }) {
  const served = models.filter((name) => !unready.some((one) => one.name === name));
  const lines = [
    "",
    `Baton is up: ${url}`,
    `  models   ${served.join(", ")}`,
    `  fleet    1 gateway, ${settings.workers} worker${settings.workers === 1 ? "" : "s"}; Redis ${brokers.redis}; NATS ${brokers.nats}`,
    `  logs     ${logs}`,
  ];
  for (const { name, reason } of unready)
    lines.push(`  ${name} is not served: ${reason ?? `see ${logs}/worker-1.log`}`);
  lines.push("", "Paste these into another terminal:", "");
  for (const { about, commands } of firstCommands(url, served))
    lines.push(`  # ${about}`, ...commands.map((command) => `  ${command}`), "");
  lines.push("Ctrl-C drains and stops everything.", "");
  return lines.join("\n");
}

const STORY = "Write a short story about a cat who discovers a secret portal.";

/** Three commands for the models that are there. */
export function firstCommands(url, models) {
  const known = [
    {
      model: "tale-gpt",
      about: "a language model tells a tale, token by token; kill a worker meanwhile, and it goes on",
      commands: [
        `curl -sN ${url}/v1/completions -d '${JSON.stringify({ model: "tale-gpt", prompt: STORY, max_tokens: 200, stream: true })}'`,
      ],
    },
    {
      model: "accumulate",
      about: "a sequence of two steps: the model remembers the 30 and answers 42, whichever worker takes the second",
      commands: [
        infer(url, "accumulate", accumulateBody({ sequence_id: 42, sequence_start: true }, 30)),
        infer(url, "accumulate", accumulateBody({ sequence_id: 42, sequence_end: true }, 12)),
      ],
    },
    {
      model: "simple",
      about: "a model without memory adds and subtracts",
      commands: [infer(url, "simple", simpleBody())],
    },
  ].filter(({ model }) => models.includes(model));
  const fleet = { about: "who serves what, and what is queued", commands: [`curl -s ${url}/v2/fleet; echo`] };
  const metadata = models
    .filter((name) => !known.some(({ model }) => model === name))
    .map((name) => ({ about: `what ${name} takes and gives`, commands: [`curl -s ${url}/v2/models/${name}; echo`] }));
  return [...known.slice(0, 2), fleet, ...metadata].slice(0, 3);
}

function infer(url, model, body) {
  return `curl -s ${url}/v2/models/${model}/infer -d '${JSON.stringify(body)}'; echo`;
}

function simpleBody() {
  const row = Array.from({ length: 16 }, (_, i) => i);
  const input = (name, data) => ({ name, datatype: "INT32", shape: [1, 16], data });
  return {
    inputs: [
      input("INPUT0", row),
      input(
        "INPUT1",
        row.map(() => 1),
      ),
    ],
  };
}

function accumulateBody(parameters, value) {
  return { parameters, inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [value] }] };
}
