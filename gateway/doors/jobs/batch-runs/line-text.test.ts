import { expect, it } from "vitest";
import { answerLine, faultLine, isForNow, lineId } from "./line-text.js";

it("a line has one name, however often it is run, and no other line has it", () => {
  expect(lineId("batch_a", 1)).toBe(lineId("batch_a", 1));
  expect(new Set([lineId("batch_a", 1), lineId("batch_a", 11), lineId("batch_b", 1)]).size).toBe(3);
});

it("what a line gave is one line, with the body as it was answered", () => {
  const body = Buffer.from('{"sum":\n 18446744073709551615}');
  const text = answerLine("batch_req_1", 'quote " and\nbreak', { status: 200, body }).toString("utf8");
  expect(text.indexOf("\n")).toBe(text.length - 1);
  expect(text).toContain("18446744073709551615");
  expect(JSON.parse(text)).toMatchObject({
    custom_id: 'quote " and\nbreak',
    response: { status_code: 200 },
    error: null,
  });
  const fault = faultLine("batch_req_1", undefined, { code: "invalid_json", message: "no" }, 17).toString("utf8");
  expect(JSON.parse(fault)).toEqual({
    id: "batch_req_1",
    custom_id: null,
    response: null,
    error: { code: "invalid_json", message: "no", line: 17 },
  });
});

it("only what the fleet has no room for now is tried again", () => {
  const said = (status: number, value: object) => isForNow({ status, body: Buffer.from(JSON.stringify(value)) });
  expect(said(429, { code: "tenant_limit" })).toBe(true);
  expect(said(503, { error: "full", code: "queue_full" })).toBe(true);
  expect(said(503, { error: { code: "unavailable" } })).toBe(true);
  expect(said(503, { error: "late", code: "expired" })).toBe(false);
  expect(said(503, { error: { code: "expired" } })).toBe(false);
  for (const status of [200, 400, 404, 413, 500]) expect(said(status, {})).toBe(false);
});
