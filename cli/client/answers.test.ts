import { expect, it } from "vitest";
import type { Job } from "../../gateway/answers.js";
import { readAnswer, readPages, without } from "./answers.js";
import type { Answer, Gateway } from "./gateway.js";

it("an answer keeps its integers, and may lack members", () => {
  expect(readAnswer<Job>('{"priority":9007199254740993}')).toEqual({ priority: 9_007_199_254_740_993n });
  expect(readAnswer<Job>("[]")).toEqual({});
});

it("an answer is shown without a long member", () => {
  expect(without({ id: "a", result: {} }, "result")).toEqual({ id: "a" });
});

/** A gateway with these pages, which notes the requests. */
function gatewayWith(pages: readonly object[]) {
  const asked: [path: string, known: boolean | undefined][] = [];
  const get = (path: string, { known }: { readonly known?: boolean } = {}): Promise<Answer> => {
    const bytes = Buffer.from(JSON.stringify(pages[asked.length]));
    asked.push([path, known]);
    return Promise.resolve({ status: 200, headers: new Headers({ "content-type": "application/json" }), bytes });
  };
  return { asked, gateway: { get } as unknown as Gateway };
}

it("a list is read page by page, each after the last id of the page before", async () => {
  const { asked, gateway } = gatewayWith([
    { object: "list", data: [{ id: "a" }], first_id: "a", last_id: "a", has_more: true },
    { object: "list", data: [{ id: "b" }], first_id: "b", last_id: "b", has_more: false },
  ]);
  const found = await readPages<Job>(gateway, "/v2/jobs", new URLSearchParams({ limit: "1" }));
  expect(found).toEqual([{ id: "a" }, { id: "b" }]);
  expect(asked).toEqual([
    ["/v2/jobs?limit=1", false],
    ["/v2/jobs?limit=1&after=a", true],
  ]);
});

it("a page with a tensor's data in a result is read without building the data", async () => {
  const result = { outputs: [{ name: "OUT", data: [1] }] };
  const page = { object: "list", data: [{ id: "a", labels: { data: "x" }, result }], last_id: "a", has_more: false };
  const [job] = await readPages<Job>(
    gatewayWith([page]).gateway,
    "/v2/jobs",
    new URLSearchParams(),
    (name, depth) => name === "data" && depth > 4,
  );
  expect(job).toMatchObject({ id: "a", labels: { data: "x" } });
  expect(job?.result).not.toEqual(result);
});
