/** The files of the console as a gateway gives them, without a browser. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { root } from "../support/fleet/root.js";
import { useFleet } from "../support/fleet/use-fleet.js";

const plan = { workers: 0, models: [], direct: true };
const served = useFleet(plan);
const without = useFleet({ ...plan, env: { BATON_CONSOLE: "false" } });

const MOST_BYTES = 120 * 1024;
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(served.url + path, { redirect: "manual", headers });

/** The paths of the script and the style that the page names. */
async function filesOfPage(): Promise<string[]> {
  const page = await (await get("/console/")).text();
  return [...page.matchAll(/(?:src|href)="(console\.[^"]+)"/g)].map(([, name]) => `/console/${name}`);
}

describe("the console's files", () => {
  it("are a page, a script and a style, with headers that let nothing else in", async () => {
    const paths = await filesOfPage();
    expect(paths.map((path) => path.replace(/\.[0-9a-f]{12}\./, ".<hash>."))).toEqual([
      "/console/console.<hash>.css",
      "/console/console.<hash>.js",
    ]);
    for (const path of ["/console", "/console/", "/console/none.js", ...paths]) {
      const { headers } = await get(path);
      expect(headers.get("content-security-policy")).toBe(POLICY);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
    }
  });

  it("are at one address: another leads to it, and others are none", async () => {
    const moved = await get("/console");
    expect([moved.status, moved.headers.get("location")]).toEqual([308, "/console/"]);
    for (const path of ["/console/none", "/console/..%2findex.html", "/console/index.html", "/console/a/b"]) {
      expect([path, (await get(path)).status]).toEqual([path, 404]);
    }
  });

  it("stay in the browser: the page until it changes, the others for good", async () => {
    const page = await get("/console/");
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page.headers.get("cache-control")).toBe("no-cache");
    const tag = page.headers.get("etag") ?? "";
    const again = await get("/console/", { "if-none-match": `"other", ${tag}` });
    expect([again.status, await again.text(), again.headers.get("etag")]).toEqual([304, "", tag]);
    expect((await get("/console/", { "if-none-match": '"other"' })).status).toBe(200);
    for (const path of await filesOfPage()) {
      expect((await get(path)).headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    }
  });

  it("are small", () => {
    const folder = join(root, "dist/console");
    const sizes = readdirSync(folder).map((name) => gzipSync(readFileSync(join(folder, name))).length);
    expect(sizes).toHaveLength(3);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(MOST_BYTES);
  });

  it("are not there if the deployment has no console", async () => {
    for (const path of ["/console", "/console/", ...(await filesOfPage())]) {
      expect((await fetch(without.url + path)).status).toBe(404);
    }
  });
});
