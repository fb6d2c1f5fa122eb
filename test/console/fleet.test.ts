/** The page Fleet, and the parts that all pages share. */
import { expect, it } from "vitest";
import type { Fleet } from "../../gateway/answers.js";
import { useFleet } from "../support/fleet/use-fleet.js";
import { inBrowser, useBrowser } from "./browser.js";
import { begin } from "./steps.js";
import { quiet, show } from "./tour.js";
import { isStream, type Seen } from "./visitor.js";

const served = useFleet({ models: ["accumulate"], jobs: 1, direct: true });
const browser = useBrowser();

inBrowser("the page Fleet", () => {
  it("shows every process and every model, and how workers come and go", async () => {
    const { page } = await browser.open(served.url);
    await page.getByRole("heading", { level: 1, name: "Fleet" }).waitFor();
    const processes = page.getByRole("grid", { name: "Fleet" });
    await processes.locator("[data-id^='worker/worker-1']").waitFor();
    for (const role of ["gateway", "jobs"]) {
      const row = processes.locator(`[data-id^='${role}/']`);
      await row.getByText(/^\d+\.\d+\.\d+/).waitFor();
      await row.getByText(/^CPU \d+ %, loop \d+ ms, [\d.]+ MiB$/).waitFor();
    }
    expect(await processes.getAttribute("aria-rowcount")).toBe("4");
    const model = page.getByRole("grid", { name: "Models" }).locator("[data-id='accumulate/1/served']");
    await model.getByText("sequence", { exact: true }).waitFor();
    await page.getByText("Nothing is amiss.").waitFor();

    const added = await served.fleet.addWorker();
    const events = page.getByRole("log", { name: "Events" }).getByRole("listitem");
    await events.getByText(/^Worker worker-2\S* \(.*\) has joined$/).waitFor();
    // A page that comes back hears of all that it has missed, once. The newest comes first.
    await page.evaluate("probe.hide(true)");
    await added.kill();
    const workers = async () => ((await (await fetch(`${served.url}/v2/fleet`)).json()) as Fleet).workers.length;
    await expect.poll(workers).toBe(2);
    await page.evaluate("probe.hide(false)");
    await events.getByText(/^Worker worker-2\S* \(.*\) is lost$/).waitFor();
    const texts = (await events.allTextContents()).filter((text) => text.includes("worker-2"));
    expect(texts.map((text) => /is lost|has joined/.exec(text)?.[0])).toEqual(["is lost", "has joined"]);
  });

  it("asks no other path than it shows, and one at a time", async () => {
    const seen = await browser.open(served.url);
    const { page, asked } = seen;
    await page.getByRole("grid", { name: "Fleet" }).waitFor();
    await quiet(seen);
    expect(asked.map(({ what }) => what).filter((what) => what.startsWith("GET /v2"))).toEqual([
      "GET /v2/fleet",
      "GET /v2/fleet/events",
    ]);
  });
});

inBrowser("every page", () => {
  it("has landmarks, and a page for every hash", async () => {
    const { page } = await browser.open(served.url, "#/nowhere");
    for (const role of ["banner", "navigation", "main"] as const) await page.getByRole(role).waitFor();
    await page.getByRole("heading", { level: 1, name: "No such page" }).waitFor();
    for (const name of [
      "Fleet",
      "Models",
      "Settings",
      "Sequences",
      "Streams",
      "Try it",
      "Jobs",
      "Schedules",
      "Batches",
      "Dead letters",
      "Webhooks",
      "Deliveries",
    ]) {
      await page.getByRole("navigation").getByRole("link", { name }).click();
      await page.getByRole("heading", { level: 1, name }).waitFor();
    }
  });

  it("says that it has no such model, with the code and the request", async () => {
    const { page } = await browser.open(served.url, "#/models/none", { provoked: ["404"] });
    const failure = page.getByRole("alert").filter({ hasText: "unknown_model" });
    await failure.getByText(/\(request [0-9a-f-]{36}\)/).waitFor();
  });

  it("changes its theme at a press of a button, and remembers it", async () => {
    const { page } = await browser.open(served.url, "", { colorScheme: "light" });
    await page.getByRole("button", { name: "Theme" }).click();
    expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
    await page.reload();
    await page.getByRole("heading", { level: 1 }).waitFor();
    expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
  });

  it("leads to pages by keys, and shows which keys there are", async () => {
    const { page } = await browser.open(served.url);
    for (const [key, name] of [
      ["m", "Models"],
      ["e", "Settings"],
      ["s", "Sequences"],
      ["r", "Streams"],
      ["j", "Jobs"],
      ["c", "Schedules"],
      ["b", "Batches"],
      ["d", "Dead letters"],
      ["w", "Webhooks"],
      ["v", "Deliveries"],
      ["t", "Try it"],
      ["f", "Fleet"],
    ] as const) {
      await page.keyboard.press("g");
      await page.keyboard.press(key);
      await page.getByRole("heading", { level: 1, name }).waitFor();
    }
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "detached" });
  });

  it("says that the gateway is away, and comes back by itself", async () => {
    const { page } = await browser.open(served.url, "", {
      provoked: ["ERR_CONNECTION_REFUSED", "ERR_EMPTY_RESPONSE", "ERR_INCOMPLETE_CHUNKED_ENCODING"],
    });
    await page.getByRole("grid", { name: "Fleet" }).waitFor();
    const away = page.getByText("The gateway does not answer.");
    const [gateway] = served.fleet.gateways;
    await gateway?.member.kill();
    await away.waitFor();
    expect(await page.getByRole("grid", { name: "Fleet" }).isVisible()).toBe(true);
    const old = page.getByText(/^old, as of \d+ s ago$/);
    await old.waitFor();
    await gateway?.member.start();
    for (const one of [away, old]) await one.waitFor({ state: "detached" });
  });
});

inBrowser("a page that rests", () => {
  /** Shows the page of a model, whose clock moves only by the returned function. */
  async function rests(seen: Seen): Promise<() => Promise<readonly string[]>> {
    const { page, asked } = seen;
    await page.clock.install();
    await show(seen, "#/models/accumulate");
    await page.clock.pauseAt(Date.now() + 60_000);
    await quiet(seen);
    return async () => {
      const before = asked.length;
      await page.clock.runFor(5_000);
      await quiet(seen);
      return asked.slice(before).map(({ what }) => what);
    };
  }

  /** A route of Playwright would tell this test of each request late, and not in its rest. */
  async function answerEvents({ page }: Seen, answer: string): Promise<void> {
    await page.evaluate(`(() => {
      const { fetch } = globalThis;
      globalThis.fetch = (path, { signal, ...init }) =>
        path === "/v2/fleet/events" ? ${answer} : fetch(path, { signal, ...init });
    })()`);
  }

  /** Rests until the page has read `count` times, which it may do once in a rest. */
  async function reads(rest: () => Promise<readonly string[]>, count: number): Promise<readonly string[]> {
    const all: string[] = [];
    while (all.length < count) {
      const found = (await rest()).filter((what) => !isStream(what));
      expect(found.length).toBeLessThanOrEqual(1);
      all.push(...found);
    }
    return all;
  }

  it("follows the fleet, reads its other path once in five seconds, and asks nothing while its tab is hidden", async () => {
    const seen = await browser.open(served.url, "#/nowhere");
    const { page, asked, pending } = seen;
    const rest = await rests(seen);
    // The clock has jumped over a silence, after which the page opens the events again.
    while (!(await rest()).includes("GET /v2/fleet/events"));
    const found = [await rest(), await rest()];
    expect(found.flat().filter((what) => what !== "GET /v2/fleet/history")).toEqual([]);
    expect(Math.max(...found.map(({ length }) => length))).toBe(1);
    expect([...pending].map((request) => new URL(request.url()).pathname)).toEqual(["/v2/fleet/events"]);

    await page.evaluate("probe.hide(true)");
    await page.getByRole("button", { name: "Refresh" }).click();
    expect([await rest(), await rest()]).toEqual([[], []]);
    expect(pending.size).toBe(0);
    await page.evaluate("probe.hide(false)");
    await expect.poll(() => asked.at(-1)?.what).toBe("GET /v2/fleet/events");
  });

  it.each([403, 404, 503])("reads its paths in turn if the gateway refuses the events with %i", async (status) => {
    const seen = await browser.open(served.url, "#/nowhere");
    await answerEvents(seen, `Promise.resolve(new Response("{}", { status: ${status} }))`);
    const rest = await rests(seen);
    const found = await reads(rest, 6);
    for (const what of ["GET /v2/fleet", "GET /v2/fleet/history"]) {
      expect(found.filter((one) => one === what).length).toBeGreaterThan(1);
    }
    await show(seen, "#/fleet");
    await seen.page.getByText("The gateway sends no events now.").waitFor();
  });

  it("reads the fleet again if the events say nothing", async () => {
    const seen = await browser.open(served.url, "#/nowhere");
    await answerEvents(seen, 'new Promise((_, no) => signal.addEventListener("abort", () => no(signal.reason)))');
    const rest = await rests(seen);
    expect(await reads(rest, 6)).toContain("GET /v2/fleet");
  });
});

inBrowser("the page of a model", () => {
  it("draws the last minutes of a model, and has them as a table", async () => {
    await begin(served.url, 70, 3);
    const { page } = await browser.open(served.url, "#/models/accumulate");
    await page.getByRole("heading", { level: 2, name: "The last minutes" }).waitFor();
    const chart = page.getByRole("figure").filter({ hasText: "Time of a request" });
    await chart.locator("canvas").waitFor();
    await chart.getByText("Table").click();
    await expect.poll(() => chart.getByRole("row").count()).toBeGreaterThan(2);
    expect(await chart.getByRole("columnheader").allTextContents()).toEqual(["Time", "50 %", "99 %"]);
  });
});
