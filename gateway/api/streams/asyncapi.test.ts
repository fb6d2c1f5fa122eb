import { createHash } from "node:crypto";
import { schemasWithoutId } from "@asyncapi/specs";
import { Ajv, type AnySchema } from "ajv";
import { describe, expect, it } from "vitest";
import { recordId, TOKEN_STREAM } from "#shared/capture/captured.js";
import { ID_HEADER } from "#shared/nats/connect.js";
import { labelledSubject, labelToken, tokenSubject } from "#shared/queue/keys.js";
import { failedRecord, lastRecord, recordAt } from "../../../test/fixtures/token-records.js";
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
    const named = { tenant: "acme", label: labelToken("team", "blue"), model: "llama-3.2", request: "Yx3k" };
    const { label, ...names } = named;
    const filled = ({ address, parameters }: { address: string; parameters: object }) => [
      address.replace(/\{(\w+)\}/g, (_, name) => named[name as keyof typeof named].replaceAll(".", "%2E")),
      Object.keys(parameters),
    ];
    const { records, labelledRecords } = document.channels;
    const address = { bucket: 3, ...names };
    expect(filled(records)).toEqual([tokenSubject(address), Object.keys(names)]);
    expect(filled(labelledRecords)).toEqual([labelledSubject(label, address), Object.keys(named)]);
  });

  it("names the stream of JetStream, and the id by which a captured record is known", () => {
    const { records, labelledRecords } = document.channels;
    const [id, labelledId] = [undefined, "<label>"].map((label) =>
      recordId({ request: "<request>", ...(label !== undefined && { label }) }, 7).replace("7", "<index>"),
    );
    for (const name of [TOKEN_STREAM, id]) expect(records.description).toContain(`\`${name}\``);
    expect(labelledRecords.description).toContain(`\`${labelledId}\``);
    expect(Object.keys(document.components.messages.record.headers.properties)).toEqual([ID_HEADER]);
  });

  it("says how a label is named, so that a client can do so", () => {
    const { label } = document.channels.labelledRecords.parameters;
    const digest = createHash("sha256").update("team:blue").digest("base64url");
    expect(label?.description).toContain(`\`${digest.slice(0, 22)}\``);
    expect(labelToken("team", "blue")).toBe(digest.slice(0, 22));
    expect(labelToken("note", "a:b, ü")).toMatch(/^[\w-]{22}$/);
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
