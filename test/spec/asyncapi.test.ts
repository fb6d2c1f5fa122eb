/** `/v2/asyncapi.json` on the wire: the document needs no tenant, and has one method. */
import { expect, it } from "vitest";
import { openGuard } from "../../gateway/http/guard.js";
import { exchange } from "../support/gateway/http.js";
import { useRequestLab } from "../support/streams/request-lab.js";

const lab = useRequestLab(openGuard("x-tenant"));
const own = { "x-tenant": "default" };

it("the AsyncAPI document is for everybody, and says nothing of anybody", async () => {
  const { status, headers, json } = await exchange(`${lab().gateway.url}/v2/asyncapi.json`, "", {}, "GET");
  expect([status, headers["content-type"]]).toEqual([200, "application/json"]);
  const { asyncapi, channels } = JSON.parse(json) as { asyncapi: string; channels: { records: { address: string } } };
  expect([asyncapi, channels.records.address]).toEqual(["3.0.0", "baton.v1.{tenant}.{model}.{request}"]);
  expect((await exchange(`${lab().gateway.url}/v2/asyncapi.json`, "", own, "POST")).status).toBe(405);
});
