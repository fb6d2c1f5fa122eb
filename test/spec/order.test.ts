/** `preserve_ordering` holds over two workers: answers leave in the order of their requests. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { iterating } from "../fixtures/iterating.js";
import { GrpcClient, type Message } from "../protocols/grpc/client.js";
import { makeModels, type MadeModel } from "../support/fleet/made-model.js";
import { useFleet } from "../support/fleet/use-fleet.js";

/** Each worker runs one request at a time, so a second request needs the second worker. */
const single = (more = ""): MadeModel => {
  const { graph, config } = iterating["counts-slowly"] ?? expect.fail("there is such a model");
  return {
    graph,
    config: config
      .replace(/max_batch_size: \d+/, "max_batch_size: 1")
      .replace("sequence_batching {", `sequence_batching {\n  ${more}`),
  };
};
const repository = mkdtempSync(join(tmpdir(), "baton-order-"));
afterAll(() => rmSync(repository, { recursive: true }));
makeModels(repository, { "in-order": single("oldest { preserve_ordering: true }"), "as-they-end": single() });
const running = useFleet({
  repository,
  models: [],
  serving: ["in-order", "as-they-end"],
  workers: 2,
  direct: true,
  grpc: true,
});

/** The model runs as often as the request says, each time for 20 ms. */
const LENGTHS = [90, 1, 2, 1, 3, 1];
const ids = LENGTHS.map((_, i) => String(i));

const counting = (model: string, id: number): Message => ({
  model_name: model,
  id: String(id),
  inputs: [{ name: "N", datatype: "FP32", shape: [1, 1], contents: { fp32_contents: [LENGTHS[id]] } }],
});

/** @returns the ids of the answers, as they came over one stream */
async function answered(model: string): Promise<string[]> {
  const client = new GrpcClient(running.fleet.gateways[0]?.grpc ?? "");
  try {
    const stream = client.stream({ "baton-unordered": "true" });
    for (const id of LENGTHS.keys()) stream.send(counting(model, id));
    const messages = await stream.finish();
    return messages.map((message) => (message["infer_response"] as { readonly id: string }).id);
  } finally {
    client.close();
  }
}

describe("the requests of a stream over two workers", () => {
  it("are answered as they end by a model without preserve_ordering", async () => {
    const answers = await answered("as-they-end");
    expect(answers.toSorted()).toEqual(ids);
    expect(answers.at(-1)).toBe("0");
  });

  it("are answered in their order by a model with preserve_ordering", async () => {
    expect(await answered("in-order")).toEqual(ids);
  });
});
