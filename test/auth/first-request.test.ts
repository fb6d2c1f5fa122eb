/** The first request with a key, which waits until the gateway has looked the key up. */
import { afterEach, expect, it } from "vitest";
import { fixedError } from "#shared/errors.js";
import { anyOwner } from "../../gateway/auth/owner/owner.js";
import type { Guard } from "../../gateway/http/guard.js";
import { inferPath, rawPost, statusesIn, withInput } from "../fixtures/requests.js";
import { rawExchange } from "../support/gateway/http.js";
import { generators, TestGateway } from "../support/gateway/test-gateway.js";

const post = rawPost(inferPath("tensor"), JSON.stringify(withInput({})));
const known = anyOwner("acme");

let gateway: TestGateway;
afterEach(() => gateway.server.close(0));

/** @param ownerOf judges each request */
async function start(ownerOf: Guard["ownerOf"]): Promise<void> {
  const guard = { asks: true, open: new Set(), ownerOf, watch: () => () => undefined } satisfies Guard;
  gateway = await TestGateway.start({ guard, models: generators });
}

it("is answered on the socket, as the next one is", async () => {
  const owners = [Promise.resolve(known)];
  await start(() => owners.shift() ?? known);
  for (const sent of [1, 2]) {
    expect(statusesIn(await rawExchange(gateway.server.port, post, /\}$/))).toEqual([200]);
    expect(gateway.plainly).toBe(sent);
  }
});

it("is refused by the way of all refusals if there is no such key", async () => {
  await start(() => Promise.reject(fixedError("invalid_api_key", "usual")));
  expect(statusesIn(await rawExchange(gateway.server.port, post, /\}$/))).toEqual([401]);
  expect([gateway.plainly, gateway.admitted]).toEqual([0, []]);
});
