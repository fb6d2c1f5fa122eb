import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LineWriter, type Sink } from "./line-writer.js";

type Done = Parameters<Sink["write"]>[1];

/** Takes nothing until the test says how much, or why not. */
class HeldSink implements Sink {
  readonly asked: string[] = [];
  #done: Done | undefined;

  write(bytes: Buffer, done: Done): void {
    if (this.#done !== undefined) throw new Error("two writes at once");
    this.asked.push(bytes.toString());
    this.#done = done;
  }

  take(bytes = this.asked.at(-1)?.length ?? 0): void {
    this.#answer(null, bytes);
  }

  fail(code: string): void {
    this.#answer(Object.assign(new Error(code), { code }), 0);
  }

  #answer(error: NodeJS.ErrnoException | null, bytes: number): void {
    const done = this.#done;
    this.#done = undefined;
    done?.(error, bytes);
  }
}

const line = (name: string) => `${name}${".".repeat(9 - name.length)}\n`;
const limits = { bufferBytes: 30, everyMs: 100, waitingBytes: 90 };
let sink: HeldSink;
let faults: string[];
let writer: LineWriter;

beforeEach(() => {
  vi.useFakeTimers();
  sink = new HeldSink();
  faults = [];
  writer = new LineWriter(
    sink,
    (error) => faults.push(error === undefined ? "over" : (error.code ?? error.message)),
    limits,
  );
});
afterEach(() => vi.useRealTimers());

describe("lines are written", () => {
  it("together after a while", () => {
    writer.add(line("a"));
    writer.add(line("b"));
    vi.advanceTimersByTime(99);
    expect(sink.asked).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(sink.asked).toEqual([line("a") + line("b")]);
  });

  it("at once if the buffer is full", () => {
    for (const name of ["a", "b", "c", "d"]) writer.add(line(name));
    expect(sink.asked).toEqual([line("a") + line("b") + line("c")]);
    sink.take();
    vi.advanceTimersByTime(100);
    expect(sink.asked[1]).toBe(line("d"));
  });

  it("from where a short write has ended, and as whole lines in another place", () => {
    for (const name of ["a", "b", "c", "d"]) writer.add(line(name));
    sink.take(14);
    expect(sink.asked[1]).toBe(line("b").slice(4) + line("c"));
    writer.moved();
    sink.take(1);
    expect(sink.asked[2]).toBe(line("b") + line("c"));
  });

  it("when the gateway stops", async () => {
    writer.add(line("a"));
    const closed = writer.close(1_000);
    expect(sink.asked).toEqual([line("a")]);
    sink.take();
    await closed;
    expect(vi.getTimerCount()).toBeLessThanOrEqual(1);
  });
});

describe("while the place takes nothing", () => {
  it("lines wait up to a limit, and later lines are dropped and counted", () => {
    for (let i = 0; i < 12; i++) writer.add(line(String(i)));
    expect(writer.dropped).toBe(3);
    sink.take();
    sink.take();
    writer.add(line("new"));
    vi.advanceTimersByTime(100);
    sink.take();
    vi.advanceTimersByTime(100);
    sink.take();
    expect(sink.asked.join("")).toBe([...Array(9).keys()].map((i) => line(String(i))).join("") + line("new"));
    expect(writer.dropped).toBe(3);
    expect(faults).toEqual(["its reader is too slow", "over"]);
  });

  it("a full pipe is tried again, and is no fault", () => {
    writer.add(line("a"));
    vi.advanceTimersByTime(100);
    sink.fail("EAGAIN");
    vi.advanceTimersByTime(100);
    expect(sink.asked).toEqual([line("a"), line("a")]);
    expect(faults).toEqual([]);
  });

  it("a fault is told once, and its end", () => {
    writer.add(line("a"));
    vi.advanceTimersByTime(100);
    sink.fail("ENOSPC");
    vi.advanceTimersByTime(100);
    sink.fail("ENOSPC");
    vi.advanceTimersByTime(100);
    sink.take();
    expect(faults).toEqual(["ENOSPC", "over"]);
  });

  it("a stopping gateway waits no longer than it has been told", async () => {
    writer.add(line("a"));
    const closed = writer.close(1_000);
    vi.advanceTimersByTime(1_000);
    await closed;
  });
});
