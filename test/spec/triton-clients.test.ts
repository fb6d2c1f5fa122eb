/**
 * Triton's clients use a real fleet for more than tensors: the server's name, an answer without
 * text, and a stream's subject.
 */
import { connect, type NatsConnection } from "nats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useFleet } from "../support/fleet/use-fleet.js";
import { textInput } from "../fixtures/requests.js";

describe("a fleet that is called triton", () => {
  const served = useFleet({ models: ["gen-cheap"], env: { BATON_SERVER_NAME: "triton" } });
  let nats: NatsConnection;
  beforeAll(async () => {
    nats = await connect({ servers: served.fleet.nats.url });
  });
  afterAll(() => nats.close());

  const post = (path: string, body: object, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${served.url}/v2/models/gen-cheap/${path}`, { method: "POST", headers, body: JSON.stringify(body) });

  /** Parameters that end the text at its beginning. */
  const atOnce = { temperature: 0, logit_bias: { 1: 100 } };

  it("says so", async () => {
    expect(await (await fetch(`${served.url}/v2`)).json()).toMatchObject({ name: "triton" });
  });

  it("answers an empty text with one event", async () => {
    const head = '"model_name":"gen-cheap","model_version":"1"';
    const stream = await post("generate_stream", { text_input: "once", ...atOnce });
    expect([stream.status, await stream.text()]).toEqual([200, `data: {${head},"text_output":""}\n\n`]);
    const inputs = [textInput("once")];
    const parameters = { ...atOnce, stream: true };
    const infer = await post("infer", { inputs, parameters }, { accept: "text/event-stream" });
    const output = '{"name":"text_output","datatype":"BYTES","shape":[1],"data":[""]}';
    expect([infer.status, await infer.text()]).toEqual([200, `data: {${head},"outputs":[${output}]}\n\n`]);
    const whole = await post("generate", { text_input: "once", ...atOnce, stream: true });
    expect([whole.status, await whole.json()]).toMatchObject([200, { text_output: "" }]);
  });

  it("tells the subject of a stream's records", async () => {
    const heard: string[] = [];
    const subscription = nats.subscribe("baton.v1.>", { callback: (_, { subject }) => void heard.push(subject) });
    await nats.flush();
    const stream = await post("generate_stream", { text_input: "once", max_tokens: 5 });
    await stream.text();
    const id = stream.headers.get("baton-request-id") ?? "";
    const state = (await (await fetch(`${served.url}/v2/requests/${id}`)).json()) as { subject: string };
    expect(state).toMatchObject({ id, subject: `baton.v1.default.gen-cheap.${id.split(".")[0]}` });
    await expect.poll(() => heard).toContain(state.subject);
    subscription.unsubscribe();
  });
});
