/** Every declared endpoint is there in a running gateway, and no other method of its path is. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import type { Method } from "../../gateway/api/endpoint/endpoint.js";
import { endpoints } from "../../gateway/endpoints.js";
import { root } from "../support/fleet/root.js";
import { answerText } from "../support/answer-text.js";
import { useFleet } from "../support/fleet/use-fleet.js";

const served = useFleet({ models: ["echo-int32"], jobs: 1 });
const methods: readonly Method[] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const byPath = new Map(endpoints.map(({ path }) => [path, endpoints.filter((one) => one.path === path)]));

/** A path that a client could ask, with names for the segments that clients choose. */
const asked = (path: string): string =>
  path
    .replaceAll(/:version\{[^}]*\}/g, "1")
    .replaceAll(":model", "echo-int32")
    .replaceAll(/:\w+/g, "none");

async function answerTo(path: string, method: Method): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(`${served.url}${asked(path)}`, { method });
  return { status: response.status, text: await answerText(response) };
}

describe("every declared path", () => {
  it.each([...byPath])("%s", async (path, declared) => {
    for (const method of methods) {
      const { status, text } = await answerTo(path, method);
      const endpoint = declared.find((one) => one.method === method);
      // The durable stream declares methods that it refuses with 405 and words of its own.
      const isRefused = endpoint === undefined || endpoint.refusals?.includes("method_not_allowed") === true;
      if (isRefused) expect({ method, status }).toEqual({ method, status: 405 });
      else expect({ method, status }).not.toEqual({ method, status: 405 });
      if (endpoint !== undefined) {
        expect({ method, text }).not.toEqual({ method, text: expect.stringMatching(/"code":"not_found"/) as string });
      }
    }
  });

  it("comes once with each method", () => {
    const names = endpoints.map(({ method, path }) => `${method} ${path}`);
    expect(new Set(names).size).toBe(names.length);
  });
});

it("npm run api -- --list names each endpoint, with its right and the line of its sentence", async () => {
  const listed = await promisify(execFile)(process.execPath, [join(root, "infra/api.mjs"), "--list"]);
  expect(listed.stderr).toBe("");
  const lines = listed.stdout.trimEnd().split("\n");
  expect(lines).toHaveLength(endpoints.length);
  for (const [i, { method, path, right = "-", does }] of endpoints.entries()) {
    const line = lines[i] ?? "";
    const [, file = "", at] = /  (gateway\/\S+\.ts):(\d+)$/.exec(line) ?? [];
    expect(line).toBe(`${method.padEnd(6)}  ${path}  ${right}  ${file}:${at}`);
    const source = readFileSync(join(root, file), "utf8").split("\n")[Number(at) - 1];
    expect(source).toContain(does.split(" ").slice(0, 2).join(" "));
  }
});

interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>;
}

async function readDocument(): Promise<Document> {
  return (await (await fetch(`${served.url}/openapi.json`)).json()) as Document;
}

describe("/openapi.json", () => {
  it("is valid by OpenAPI 3.1, and names each operation once", async () => {
    const document = await readDocument();
    expect(document.openapi).toBe("3.1.0");
    expect(await new Validator().validate({ ...document })).toMatchObject({ valid: true });
    const ids = Object.values(document.paths).flatMap((item) => Object.values(item).map((one) => one.operationId));
    expect(ids.length).toBe(new Set(ids).size);
  });

  it("describes the same operations", async () => {
    const document = await readDocument();
    const described = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const declared = endpoints.map(
      ({ method, path }) => `${method} ${path.replaceAll(/:(\w+)(?:\{[^}]*\})?/g, "{$1}")}`,
    );
    expect(described.sort()).toEqual(declared.sort());
  });
});
