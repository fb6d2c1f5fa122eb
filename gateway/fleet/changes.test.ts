import { describe, expect, it } from "vitest";
import { changesBetween, type FleetLook } from "./changes.js";

type Fleet = FleetLook["fleet"];

function look({
  workers = [],
  models = [],
  takeovers = [],
  goneBack,
}: {
  readonly workers?: readonly string[];
  /** Name, version, and how many requests were set aside. */
  readonly models?: readonly (readonly [name: string, version: string, dead: number])[];
  readonly takeovers?: FleetLook["takeovers"];
  readonly goneBack?: Fleet["gone_back"];
}): FleetLook {
  const fleet = {
    workers: workers.map((name) => ({ name, host: "h" })),
    models: models.map(([name, version, dead]) => ({ name, version, digest: "d", set_aside: dead })),
    gone_back: goneBack,
  };
  return { fleet: fleet as unknown as Fleet, takeovers, hasLeft: (worker) => worker === "polite" };
}

const told = (before: FleetLook, now: FleetLook) =>
  changesBetween(before, now).map(({ event, data }) => `${event} ${JSON.stringify(data)}`);

describe("what has changed in the fleet", () => {
  it("is nothing between equal looks", () => {
    const one = look({ workers: ["a"], models: [["m", "1", 2]], takeovers: [{ name: "m", version: "1", count: 3 }] });
    expect(changesBetween(one, one)).toEqual([]);
  });

  it("names workers that come, are lost, and leave", () => {
    expect(told(look({ workers: ["a", "polite"] }), look({ workers: ["b"] }))).toEqual([
      'worker.lost {"worker":"a","host":"h"}',
      'worker.left {"worker":"polite","host":"h"}',
      'worker.joined {"worker":"b","host":"h"}',
    ]);
  });

  it("names versions that are served from now on, or no longer", () => {
    expect(told(look({ models: [["m", "1", 0]] }), look({ models: [["m", "2", 0]] }))).toEqual([
      'model.served {"model":"m","version":"2"}',
      'model.retired {"model":"m","version":"1"}',
    ]);
  });

  it("counts requests that were set aside once for a model, whatever versions it has", () => {
    const models = (dead: number) => [["m", "1", dead] as const, ["m", "2", dead] as const];
    expect(told(look({ models: models(1) }), look({ models: models(3) }))).toEqual([
      'dead.added {"model":"m","count":2}',
    ]);
    expect(told(look({}), look({ models: models(3) })).filter((line) => line.startsWith("dead"))).toEqual([]);
  });

  it("counts requests that were taken over, and tells of a loss of Redis once", () => {
    const takeovers = (count: number) => [{ name: "m", version: "1", count }];
    expect(told(look({ takeovers: takeovers(1) }), look({ takeovers: takeovers(4) }))).toEqual([
      'takeover {"model":"m","version":"1","count":3}',
    ]);
    const goneBack = { times: 1, lost_calls: 2, last_at: "now", error: "lost" };
    expect(told(look({}), look({ takeovers: takeovers(1_234) }))).toEqual([]);
    expect(told(look({}), look({ goneBack }))).toEqual([`gone_back ${JSON.stringify(goneBack)}`]);
    expect(told(look({ goneBack }), look({ goneBack }))).toEqual([]);
  });
});
