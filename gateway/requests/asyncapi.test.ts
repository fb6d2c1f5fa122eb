import { schemasWithoutId } from "@asyncapi/specs";
import { Ajv, type AnySchema } from "ajv";
import { describe, expect, it } from "vitest";
import { recordId, TOKEN_STREAM } from "#shared/capture/captured.js";
import { ID_HEADER } from "#shared/nats/connect.js";
import { tokenSubject } from "#shared/queue/keys.js";
import { failedRecord, lastRecord, recordAt } from "../../test/fixtures/token-records.js";
import { asyncApi } from "./asyncapi.js";

const ajv = new Ajv({ strict: false, validateFormats: false });
const document = asyncApi("1.2.3");

describe("the AsyncAPI document", () => {
  it("is one, by the specification's own schema", () => {
    const isValid = ajv.compile(schemasWithoutId["3.0.0"] as AnySchema);
    expect([isValid(document), isValid.errors]).toEqual([true, null]);
    expect([isValid({ ...document, channels: { records: { adress: "x" } } })]).toEqual([false]);
  });

  it("names the subjects that records are published on", () => {
    const { address, parameters } = document.channels.records;
    const names: Record<string, string> = { tenant: "acme", model: "llama-3.2", request: "Yx3k" };
    const subject = address.replace(/\{(\w+)\}/g, (_, name: string) => (names[name] ?? "").replaceAll(".", "%2E"));
    expect(subject).toBe(tokenSubject({ bucket: 3, tenant: "acme", model: "llama-3.2", request: "Yx3k" }));
    expect(Object.keys(parameters)).toEqual(Object.keys(names));
  });

  it("names the stream of JetStream, and the id by which a captured record is known", () => {
    const { description } = document.channels.records;
    const id = recordId({ request: "<request>" }, 7).replace("7", "<index>");
    for (const name of [TOKEN_STREAM, id]) expect(description).toContain(`\`${name}\``);
    expect(Object.keys(document.components.messages.record.headers.properties)).toEqual([ID_HEADER]);
  });

  it("describes what is a record, and nothing else", () => {
    const isRecord = ajv.compile(document.components.messages.record.payload.schema);
    const records: unknown[] = [recordAt(0), lastRecord(1)].map((json) => JSON.parse(json) as unknown);
    for (const record of [...records, failedRecord(2, "model_error", "x")]) expect(isRecord(record)).toBe(true);
    expect(isRecord({ index: 1, choices: [], added: "later" })).toBe(true);
    for (const wrong of [{}, { index: 1 }, { index: -1, choices: [] }, { index: 1, choices: [], final: false }]) {
      expect(isRecord(wrong)).toBe(false);
    }
  });
});
