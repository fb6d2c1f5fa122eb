import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { fixedError } from "#shared/errors.js";
import { announcementOf, servedModel } from "../../../../test/fixtures/served-models.js";
import { root } from "../../../../test/support/fleet/root.js";
import type { Inference, InferenceRequest } from "../../../admission/inference.js";
import { directoryOf } from "../../../fleet/models.js";
import { RequestBudget } from "../../../admission/budget.js";
import { defaultLimits } from "../../../formats/limits.js";
import type * as Host from "../../../formats/kserve/parse-thread.js";
import { RequestReader } from "../../../formats/kserve/request-reader.js";
import { TensorPrinter } from "../../../formats/kserve/tensor-printer.js";
import { LineAsker } from "./ask-line.js";

// A thread can only start from a compiled file.
const built = pathToFileURL(join(root, "dist/gateway/formats/kserve/parse-thread.js")).href;
const { ParseThread } = (await import(built)) as typeof Host;

it("leaves the memory of a long line whole, for other lines of the file and for the next attempt", async () => {
  const thread = new ParseThread();
  onTestFinished(() => thread.close());
  const asked: InferenceRequest[] = [];
  const inference: Inference = {
    infer: (request) => {
      asked.push(request);
      throw fixedError("unavailable", "stopping");
    },
    inferLater: () => Promise.reject(new Error("a line waits for its outcome")),
    generate: () => Promise.reject(new Error("a tensor model does not generate")),
  };
  const bugs: unknown[] = [];
  const asker = new LineAsker({
    fleet: { directory: directoryOf([announcementOf([servedModel("echo")])]) },
    tenants: {
      termsOf: () =>
        Promise.resolve({
          mayUse: () => true,
          limited: { id: "", limits: {} },
          budget: new RequestBudget({ rates: [] }),
        }),
    },
    inference,
    reader: new RequestReader(thread),
    printer: new TensorPrinter(),
    limits: defaultLimits,
    onBug: (error) => void bugs.push(error),
  });

  // Longer than what the reader reads in its own thread, and a part of a larger buffer.
  const padding = " ".repeat(200_000);
  const text = `{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1],"data":${padding}[7]}]}`;
  const part = Buffer.from(new TextEncoder().encode(`${text}\nthe next line`).buffer);
  const body = part.subarray(0, text.length);
  const ask = () =>
    asker.ask({ tenant: "blue", path: "/v2/models/echo/infer", models: undefined, key: "batch_a:1", body });

  expect((await ask()).status).toBe(503);
  expect(part.toString("utf8", text.length)).toBe("\nthe next line");
  expect((await ask()).status).toBe(503);
  expect(bugs).toEqual([]);
  expect(asked.map(({ inputs }) => inputs[0]?.data.readInt32LE())).toEqual([7, 7]);
});
