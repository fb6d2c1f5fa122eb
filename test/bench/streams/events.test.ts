import { describe, expect, it } from "vitest";
import { eventsOf, type Arrival } from "./events.js";

const HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

function event(index: number, text: string, finish: string | null = null): string {
  const choices = [{ index: 0, text, logprobs: null, finish_reason: finish }];
  return `id: ${index}\ndata: ${JSON.stringify({ id: "cmpl-1", choices })}\n\n`;
}

function chunk(body: string): string {
  return `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n`;
}

function arrivals(...parts: string[]): Arrival[] {
  return parts.map((text, at) => ({ at, bytes: Buffer.from(text) }));
}

describe("eventsOf", () => {
  it("gives each event the time of its last byte", () => {
    const last = event(2, "c", "length");
    const [early, late] = [last.slice(0, 9), last.slice(9)];
    const { events, done } = eventsOf(
      arrivals(
        HEAD,
        chunk(event(0, "a") + event(1, "é")),
        chunk(": \n\n"),
        chunk(early),
        chunk(late) + chunk("data: [DONE]\n\n"),
        "0\r\n\r\n",
      ),
    );
    expect(events).toEqual([
      { index: 0, text: "a", finish: null, at: 1 },
      { index: 1, text: "é", finish: null, at: 1 },
      { index: 2, text: "c", finish: "length", at: 4 },
    ]);
    expect(done).toBe(true);
  });

  it("gives the same events however the bytes are cut", () => {
    const whole = HEAD + chunk(event(0, "ab\ncd")) + chunk(event(1, "\u{1f600}") + event(2, "")) + "0\r\n\r\n";
    const bytes = Buffer.from(whole);
    const untimed = (answered: ReturnType<typeof eventsOf>) =>
      answered.events.map(({ index, text, finish }) => ({ index, text, finish }));
    const expected = untimed(eventsOf([{ at: 0, bytes }]));
    expect(expected.map(({ text }) => text)).toEqual(["ab\ncd", "\u{1f600}", ""]);
    for (let size = 1; size < 40; size++) {
      const cut: Arrival[] = [];
      for (let at = 0; at < bytes.length; at += size) cut.push({ at, bytes: bytes.subarray(at, at + size) });
      const answered = eventsOf(cut);
      expect(untimed(answered)).toEqual(expected);
      const times = answered.events.map(({ at }) => at);
      expect(times).toEqual([...times].sort((a, b) => a - b));
    }
  });

  it("is not done without [DONE], nor with more after it", () => {
    expect(eventsOf(arrivals(HEAD + chunk(event(0, "a")) + "0\r\n\r\n")).done).toBe(false);
    expect(eventsOf(arrivals(HEAD + chunk("data: [DONE]\n\n" + event(0, "a")) + "0\r\n\r\n")).done).toBe(false);
  });
});
