import { describe, expect, it } from "vitest";
import type { Announcement } from "#shared/contract/announcement.js";
import { announcementOf, servedModel } from "../../test/fixtures/served-models.js";
import { isExplicit, loadState, unloadState, type FleetControl } from "./control.js";

function worker(name: string, number: number, models: string[], failed: Announcement["failed"] = []): Announcement {
  const obeys = { number, idle: [{ name: "idle", wasUnloaded: false }] };
  return {
    ...announcementOf(
      models.map((model) => servedModel(model)),
      failed,
    ),
    worker: name,
    obeys,
  };
}

const refusal = { number: 5, reason: "'n' cannot be loaded any more: bad", failed: [{ name: "n", reason: "bad" }] };
const fleet = (workers: Announcement[], refused: string[] = []): FleetControl => ({
  workers,
  lapsed: [],
  refusals: new Map(refused.map((name) => [name, refusal])),
});

describe("the load of a model", () => {
  it.each<[string, FleetControl, object]>([
    ["waits while there is no worker", fleet([]), { is: "pending" }],
    ["waits for a worker that knows it", fleet([worker("a", 4, ["m"])]), { is: "pending" }],
    ["has ended with the first worker", fleet([worker("a", 4, []), worker("b", 5, ["m"])]), { is: "fulfilled" }],
    [
      "waits for the others after a failure",
      fleet([worker("a", 4, []), worker("b", 5, [], [{ name: "m", reason: "bad" }])]),
      { is: "pending" },
    ],
    [
      "has failed at all workers",
      fleet([worker("b", 6, [], [{ name: "m", reason: "worse" }])]),
      { is: "failed", reason: "worse" },
    ],
    ["has failed with another model", fleet([worker("a", 4, ["m"])], ["a"]), { is: "failed", reason: refusal.reason }],
    [
      "has failed where no worker takes it",
      fleet([worker("a", 5, [])]),
      { is: "failed", reason: "no worker serves it" },
    ],
  ])("%s", (_, control, state) => {
    expect(loadState(control, "m", 5)).toEqual(state);
  });

  it("has failed with the reason of the model itself", () => {
    expect(loadState(fleet([worker("a", 4, ["n"])], ["a"]), "n", 5)).toEqual({ is: "failed", reason: "bad" });
    expect(loadState(fleet([worker("a", 4, ["n"])], ["a"]), "n", 6)).toEqual({ is: "pending" });
  });

  it("is for fleets that obey, also while their only worker starts again", () => {
    const gone = { ...fleet([]), lapsed: [worker("a", 5, ["m"])] };
    expect(isExplicit(gone)).toBe(true);
    expect(isExplicit(fleet([announcementOf([servedModel("m")])]))).toBe(false);
  });
});

describe("the unload of a model", () => {
  it.each<[string, FleetControl, object]>([
    ["has ended where nobody serves it", fleet([worker("a", 4, ["n"])]), { is: "fulfilled" }],
    ["waits for a worker that serves it", fleet([worker("a", 4, ["m"]), worker("b", 5, [])]), { is: "pending" }],
    [
      "waits for the others after a refusal",
      fleet([worker("a", 4, ["m"]), worker("b", 4, ["m"])], ["a"]),
      { is: "pending" },
    ],
    [
      "has failed if a worker goes on with it",
      fleet([worker("a", 4, ["m"]), worker("b", 5, [])], ["a"]),
      { is: "failed", reason: refusal.reason },
    ],
    [
      "has failed if it was loaded again",
      fleet([worker("a", 6, ["m"])]),
      { is: "failed", reason: "it has been loaded again since" },
    ],
  ])("%s", (_, control, state) => {
    expect(unloadState(control, "m", 5)).toEqual(state);
  });
});
