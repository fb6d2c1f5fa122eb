import { describe, expect, it } from "vitest";
import { announcementOf, servedModel } from "../../test/fixtures/served-models.js";
import { directoryOf, type ModelDirectory } from "./models.js";
import { InferenceError } from "#shared/errors.js";

function refusal(directory: ModelDirectory, name: string, version?: string): unknown {
  try {
    return directory.find(name, version);
  } catch (error) {
    return error instanceof InferenceError ? [error.code, error.message] : error;
  }
}

describe("a directory made from announcements", () => {
  const directory = directoryOf([
    announcementOf([servedModel("m", { version: "9" }), servedModel("m", { version: "10" }), servedModel("a")]),
    announcementOf(
      [servedModel("m", { version: "10" })],
      [
        { name: "a", version: "1", reason: "here only" },
        { name: "bad", reason: "no model file" },
        { name: "m", version: "11", reason: "broken" },
      ],
    ),
  ]);

  it("gives the numerically greatest version, or the one asked for", () => {
    expect(directory.find("m").version).toBe("10");
    expect(directory.find("m", "9").version).toBe("9");
  });

  it("lists by name and version, each once", () => {
    expect(directory.all().map(({ name, version }) => `${name}/${version}`)).toEqual(["a/1", "m/9", "m/10"]);
  });

  it("counts as failed only what no worker serves", () => {
    expect(directory.failed().map(({ name, version }) => `${name}/${version}`)).toEqual(["bad/undefined", "m/11"]);
  });

  it.each([
    ["x", undefined, "unknown_model", "Request for unknown model: 'x' is not found"],
    ["x", "3", "unknown_model", "Request for unknown model: 'x' version 3 is not found"],
    ["m", "3", "unknown_model", "Request for unknown model: 'm' version 3 is not found"],
    ["m", "010", "unknown_model", "Request for unknown model: 'm' version 010 is not found"],
    ["m", "11", "model_unavailable", "Request for unknown model: 'm' version 11 is not at ready state"],
    ["bad", undefined, "unknown_model", "Request for unknown model: 'bad' has no available versions"],
    ["__proto__", undefined, "unknown_model", "Request for unknown model: '__proto__' is not found"],
  ])("refuses %s %s", (name, version, code, message) => {
    expect(refusal(directory, name, version)).toEqual([code, message]);
  });

  it.each(["-1", "1.5", "latest", ""])("refuses version '%s' as no number", (version) => {
    expect(refusal(directory, "m", version)).toEqual([
      "invalid_argument",
      `failed to get model version from specified version string '${version}', version should be an integral value > 0`,
    ]);
  });
});

describe("workers that disagree about a model", () => {
  it("are outvoted, and the conflict is shown", () => {
    const offer = (digest: string): ReturnType<typeof announcementOf> => announcementOf([servedModel("m", { digest })]);
    const directory = directoryOf([offer("x"), offer("y"), offer("y")]);
    expect(directory.find("m").digest).toBe("y");
    expect(directory.failed()).toEqual([
      {
        name: "m",
        version: "1",
        reason: "workers serve 2 different models under this name and version (2, 1 workers); using digest y",
      },
    ]);
  });

  it("give every gateway the same choice when equal in number", () => {
    const x = announcementOf([servedModel("m", { digest: "x" })]);
    const y = announcementOf([servedModel("m", { digest: "y" })]);
    expect([directoryOf([x, y]), directoryOf([y, x])].map((directory) => directory.find("m").digest)).toEqual([
      "x",
      "x",
    ]);
  });
});

describe("what sequences go on with", () => {
  const of = (worker: string, version: string, digest: string) => ({
    ...announcementOf([servedModel("m", { version, digest })]),
    worker,
  });
  const old = of("old.1", "1", "a");
  const latest = of("new.1", "2", "b");
  const pin = { version: "1", digest: "a" };

  it("is every version, and every set of files, that a worker serves", () => {
    const other = of("other.1", "1", "c");
    const directory = directoryOf([old, latest, other]);
    const found = directory.find("m");
    expect(found.version).toBe("2");
    expect(directory.pinned("m", pin)?.digest).toBe("a");
    expect(directory.others(found).map(({ version, digest }) => `${version}${digest}`)).toEqual(["1a", "1c"]);
    expect(directory.pinned("m", { version: "1", digest: "x" })).toBeUndefined();
  });

  it("is also what a worker served that fell silent: it may be back soon", () => {
    expect(directoryOf([latest], [old], [old]).pinned("m", pin)?.version).toBe("1");
  });

  it("is not what a worker served that left, unless nobody serves the model now", () => {
    expect(directoryOf([latest], [old], []).pinned("m", pin)).toBeUndefined();
    expect(directoryOf([], [old], []).pinned("m", pin)?.version).toBe("1");
  });
});
