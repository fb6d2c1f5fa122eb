/** A planted change is found, and recordings that differ only in ids and times are equal. */
import { describe, expect, it } from "vitest";
import { differences, layoutDifferences } from "./compare.js";
import { Recorder, type Recorded } from "./recorder.js";

const recorded: Recorded = {
  name: "GET /v2",
  status: 200,
  headers: { "x-request-id": "<drawn>" },
  body: "a long word",
};

function kept(body: string, headers: Readonly<Record<string, string>> = {}): Recorded | undefined {
  const recorder = Recorder.at("http://127.0.0.1:1");
  recorder.keep("GET /v2/jobs", { status: 200, headers, body: Buffer.from(body) });
  return recorder.recorded[0];
}

const uuids = ["1fb1c0de-0000-4000-8000-000000000001", "1fb1c0de-0000-4000-8000-000000000002"] as const;

describe("the comparison of two recordings", () => {
  it("finds nothing in equal ones", () => {
    expect(differences([recorded], [{ ...recorded }])).toEqual([]);
    expect(layoutDifferences(["a"], ["a"])).toEqual([]);
  });

  it.each([
    ["status", { status: 201 }, "status 200 -> 201"],
    ["header", { headers: {} }, "x-request-id: <drawn> -> none"],
    ["word", { body: "a long ward" }, 'body at 8: "a long word" -> "a long ward"'],
  ])("finds a planted %s", (_, planted, line) => {
    expect(differences([recorded], [{ ...recorded, ...planted }])).toEqual([`GET /v2\n  ${line}`]);
  });

  it("finds an exchange that is gone, a new one, and a changed store", () => {
    expect(differences([recorded, recorded], [recorded])).toEqual(["GET /v2: is gone"]);
    expect(differences([], [recorded])).toEqual(["GET /v2: is new"]);
    expect(layoutDifferences(["a"], ["b"])).toEqual(["the store holds no a", "the store holds a new b"]);
  });
});

describe("a recording", () => {
  it("leaves out ids, times and secrets, and so the length of an answer that holds one", () => {
    const one = kept(`{"id":"${uuids[0]}.3.simple","at":"2026-11-23T10:00:00.000Z","ms":5}`, {
      "content-length": "72",
    });
    const other = kept(`{"id":"${uuids[1]}.7.simple","at":"2026-11-24T11:00:00Z","ms":50}`, { "content-length": "69" });
    expect(one).toEqual(other);
    expect(one?.body).toBe('{"id":"<request 1>","at":"<time>","ms":<count>}');
  });

  it("shows that an answer has the id of another request", () => {
    expect(kept(`${uuids[0]} ${uuids[0]}`)?.body).not.toBe(kept(`${uuids[0]} ${uuids[1]}`)?.body);
  });

  it("leaves words as they are", () => {
    const words = "max_sequence_idle_microseconds of CONTROL_SEQUENCE_START is 60000000";
    expect(kept(words, { "content-length": "68" })).toMatchObject({ body: words, headers: { "content-length": "68" } });
  });
});
