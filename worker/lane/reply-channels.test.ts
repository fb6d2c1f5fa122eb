import { describe, expect, it } from "vitest";
import { ReplyChannels } from "./reply-channels.js";

function kindsOf(due: ReturnType<ReplyChannels["beat"]>): string[] {
  return due.map(({ gateway, mark }) => `${gateway} ${mark.kind} ${mark.number}`);
}

describe("ReplyChannels", () => {
  it("speaks before the first commit, beats while one is under way, and then says that it rests", () => {
    const channels = new ReplyChannels("w");
    expect(channels.begin("gw")).toEqual({ sender: "w", channel: 1, number: 1, kind: "beat" });
    expect(channels.begin("gw")).toBeUndefined();
    expect(channels.beat()).toEqual([]); // the worker has just sent a message
    expect(kindsOf(channels.beat())).toEqual(["gw beat 2"]);
    expect(channels.beat()).toEqual([]);
    channels.end("gw");
    expect(kindsOf(channels.beat())).toEqual(["gw beat 3"]);
    channels.end("gw");
    channels.beat();
    expect(kindsOf(channels.beat())).toEqual(["gw rest 4"]);
    for (let i = 0; i < 10; i++) expect(channels.beat()).toEqual([]);
    expect(channels.begin("gw")).toMatchObject({ channel: 1, number: 5, kind: "beat" });
  });

  it("sends no beat where replies flow", () => {
    const channels = new ReplyChannels("w");
    channels.begin("gw");
    for (let i = 0; i < 10; i++) {
      expect(channels.next("gw")).toMatchObject({ number: 2 + i, kind: "replies" });
      expect(channels.beat()).toEqual([]);
    }
  });

  it("keeps gateways apart", () => {
    const channels = new ReplyChannels("w");
    expect(channels.begin("a")).toMatchObject({ channel: 1, number: 1 });
    expect(channels.begin("b")).toMatchObject({ channel: 2, number: 1 });
    channels.end("a");
    channels.beat();
    expect(kindsOf(channels.beat())).toEqual(["a rest 2", "b beat 2"]);
  });

  it("leaves a gap that the next beat shows", () => {
    const channels = new ReplyChannels("w");
    channels.begin("gw");
    channels.end("gw");
    channels.beat();
    channels.beat();
    channels.skip("gw");
    expect(kindsOf(channels.beat())).toEqual([]);
    expect(kindsOf(channels.beat())).toEqual(["gw rest 4"]);
  });

  it("tells every gateway, also those at rest, how many messages there were", () => {
    const channels = new ReplyChannels("w");
    channels.begin("busy");
    channels.begin("resting");
    channels.end("resting");
    channels.beat();
    channels.beat();
    expect(kindsOf(channels.all())).toEqual(["busy beat 3", "resting rest 3"]);
  });

  it("forgets a gateway that it has long sent nothing, and begins anew under a higher id", () => {
    const channels = new ReplyChannels("w");
    channels.begin("gw");
    channels.end("gw");
    for (let i = 0; i < 2_500; i++) channels.beat();
    expect(channels.all()).toEqual([]);
    expect(channels.begin("gw")).toMatchObject({ channel: 2, number: 1, kind: "beat" });
  });
});
