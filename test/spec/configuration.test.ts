import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startFleet, type Fleet } from "../support/fleet/fleet.js";
import { makeRepository } from "../support/fleet/repository.js";
import { ask, input } from "./ask.js";

interface FleetView {
  readonly workers: { readonly failed: { readonly name: string; readonly reason: string }[] }[];
  readonly models: { readonly name: string; readonly warnings?: string[] }[];
}

const extra = `
optimization { eager_batching: true }
instance_group { host_policy: "one" kind: KIND_CPU }
`;
const unknown = `dynamic_batching { } model_repository_agents { agents { name: "checksum" } } instance_group { passive: true }`;
/** Triton's own tests begin a state like this, from a file of four bytes for any type. */
const fromFile = `
  initial_state: { name: "state init" data_type: TYPE_STRING dims: [ 1 ] data_file: "input_state_data" }`;

describe("a configuration that is not obeyed", () => {
  let fleet: Fleet;
  let url = "";
  beforeAll(async () => {
    fleet = await startFleet({ workers: 0, models: ["simple"] });
    const models = join(fleet.folder, "models");
    makeRepository(models, ["echo-int32", "echo-fp32", "bytes-memory"]);
    const rewrite = (model: string, change: (text: string) => string) => {
      const file = join(models, model, "config.pbtxt");
      writeFileSync(file, change(readFileSync(file, "utf8")));
    };
    rewrite("echo-int32", (text) => text.replace("dynamic_batching { }", unknown));
    rewrite("echo-fp32", (text) => text + extra);
    rewrite("bytes-memory", (text) => text.replace(/(?<=output_name: "NEXT" .*dims: \[ 1 \])/, fromFile));
    mkdirSync(join(models, "bytes-memory/initial_state"));
    writeFileSync(join(models, "bytes-memory/initial_state/input_state_data"), Buffer.from([0x64, 0, 0, 0]));
    await fleet.addWorker();
    await fleet.whenServing();
    [url = ""] = fleet.urls;
  });
  afterAll(() => fleet.dispose());

  const view = async () => (await (await fetch(`${url}/v2/fleet`)).json()) as FleetView;
  const one = input("INPUT", "FP32", [1, 1], [1.5]);

  it("is refused by the name of its fields where that could change what clients get", async () => {
    const { workers } = await view();
    expect(workers[0]?.failed).toEqual([
      expect.objectContaining({
        name: "echo-int32",
        reason: expect.stringMatching(
          /instance_group\[0\]\.passive is not supported: .*model_repository_agents\.agents is not supported: /,
        ) as unknown,
      }),
    ]);
  });

  it("is warned of by the name of its fields where it changes no answer", async () => {
    const { models } = await view();
    const warnings = [
      expect.stringContaining("optimization.eager_batching has no effect: "),
      expect.stringContaining("instance_group[0].host_policy has no effect: "),
    ];
    expect(models.find(({ name }) => name === "echo-fp32")?.warnings).toEqual(warnings);
    expect(models.find(({ name }) => name === "simple")?.warnings).toBeUndefined();
    const lacking = ["initial_state data_file 'input_state_data' has 0 whole strings of 1: the others begin empty"];
    expect(models.find(({ name }) => name === "bytes-memory")?.warnings).toEqual(lacking);
    const said = fleet.workers.flatMap((worker) => worker.lives.flatMap(({ lines }) => lines));
    const logged = said
      .filter(({ fields }) => fields["level"] === 40 && fields["warning"] !== undefined)
      .map(({ fields }) => fields["warning"]);
    expect(logged).toEqual([...lacking, ...warnings]);
    expect((await ask(url, "echo-fp32", { inputs: [one] })).outputs["OUTPUT"]).toEqual([1.5]);
  });

  it("begins a state with empty strings if its file lacks them", async () => {
    const step = async (text: string, start = false) => {
      const inputs = [input("TEXT", "BYTES", [1, 1], [text]), input("PICK", "BOOL", [1, 1], [false])];
      const parameters = { sequence_id: "a", sequence_start: start };
      return (await ask(url, "bytes-memory", { parameters, inputs })).outputs["PREVIOUS"];
    };
    expect(await step("first", true)).toEqual([""]);
    expect(await step("second")).toEqual(["first"]);
  });

  it("is refused in a request too: this model has no priorities", async () => {
    const asked = (priority: number) => ask(url, "echo-fp32", { parameters: { priority }, inputs: [one] });
    expect((await asked(0)).status).toBe(200);
    const { status, error } = await asked(1);
    expect([status, error]).toEqual([400, expect.stringContaining("priority 1 is not supported")]);
    const metadata = (await (await fetch(`${url}/v2`)).json()) as { extensions: string[] };
    expect(metadata.extensions).toContain("schedule_policy");
  });
});
