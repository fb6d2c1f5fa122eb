/**
 * A gateway that parses plain requests on the socket has the same effects as one that leaves all
 * requests to node: on random connections, most of which have something odd. `BATON_FULL=1` tries a
 * million.
 */
import { expect, it } from "vitest";
import { seededRandom } from "../../../support/fleet/random.js";
import { conversation, tricks } from "./requests.js";
import { expectSame, useTwins } from "./twins.js";

const COUNT = process.env["BATON_FULL"] === "1" ? 1_000_000 : 4_000;
const FIRST_SEED = Number(process.env["BATON_SEED"] ?? 20_261_128);

const twins = useTwins();

it(
  "has the same effects by both ways",
  async () => {
    let [admitted, lost] = [0, 0];
    for (let seed = FIRST_SEED; seed < FIRST_SEED + COUNT; seed++) {
      const sent = conversation(seededRandom(seed));
      const [onSocket, byNode] = await Promise.all([twins.onSocket(sent), twins.byNode(sent)]);
      admitted += byNode.admitted.length;
      lost += Number(expectSame(onSocket, byNode, `seed ${seed}`));
    }
    expect(lost).toBeLessThan(COUNT / 20);
    // Neither way is idle in this test.
    expect(twins.plainly).toBeGreaterThan(COUNT / 3);
    expect(admitted - twins.plainly).toBeGreaterThan(COUNT / 4);
  },
  COUNT * 100,
);

it.each(tricks(seededRandom(FIRST_SEED)))("has the same effects by both ways: %s", async (name, ...both) => {
  for (const sent of both) expectSame(await twins.onSocket(sent), await twins.byNode(sent), name);
});
