/** Server reflection: off by default, and judged as the server's metadata are. */
import { afterAll, describe, expect, it } from "vitest";
import { newKey } from "../../../gateway/auth/key.js";
import { useKeyedFleet } from "../../auth/keyed.js";
import { freePort } from "../../support/brokers/port.js";
import { GrpcClient, HEALTH, INFERENCE } from "./client.js";
import { Reflection, versions } from "./reflection.js";

const fleet = useKeyedFleet({
  models: ["echo-int32"],
  direct: true,
  grpc: true,
  env: { BATON_GRPC_REFLECTION: "true" },
});
const opened: GrpcClient[] = [];
afterAll(() => opened.forEach((one) => one.close()));

function clientOf(target = fleet.served.fleet.gateways[0]?.grpc ?? ""): GrpcClient {
  const client = new GrpcClient(target);
  opened.push(client);
  return client;
}

/** Starts another gateway. */
async function launch(env: Readonly<Record<string, string>>) {
  const [port, grpcPort] = [await freePort(), await freePort()];
  const gateway = fleet.served.fleet.launch("gateway/main.js", {
    BATON_HTTP_PORT: String(port),
    BATON_GRPC_PORT: String(grpcPort),
    ...env,
  });
  await gateway.waitForMessage("gateway listening");
  return { gateway, client: clientOf(`127.0.0.1:${grpcPort}`) };
}

describe("reflection", () => {
  it.each(versions)("lists the services, and gives the file of a symbol: %s", async (version) => {
    const reflection = new Reflection(clientOf(), version);
    const { names } = await reflection.ask("services", "*");
    expect([...names].sort()).toEqual([HEALTH, INFERENCE].sort());
    const { files } = await reflection.ask("symbol", `${INFERENCE}.ModelInfer`);
    const service = files.find(({ services }) => "GRPCInferenceService" in services);
    expect(service?.services["GRPCInferenceService"]).toContain("ModelStreamInfer");
    expect(files.flatMap(({ messages }) => messages)).toEqual(
      expect.arrayContaining(["ModelInferRequest", "ModelConfig", "ModelInferResponse"]),
    );
    expect((await reflection.ask("symbol", HEALTH)).files).toMatchObject([
      { services: { Health: ["Check", "Watch"] } },
    ]);
    expect(await reflection.ask("symbol", "inference.None")).toMatchObject({ files: [], error: 5 });
    expect((await reflection.finish()).code).toBe(0);
  });

  it("answers many questions of a client that reads later", async () => {
    const reflection = new Reflection(clientOf());
    const answers: Buffer[] = [];
    const MANY = 2_000;
    for (let i = 0; i < MANY; i++) reflection.send("symbol", INFERENCE);
    reflection.call.on("data", (answer: Buffer) => answers.push(answer));
    expect((await reflection.finish()).code).toBe(0);
    expect(answers).toHaveLength(MANY);
  });

  it("refuses a long question", async () => {
    const reflection = new Reflection(clientOf());
    await expect(reflection.ask("symbol", "x".repeat(5_000))).rejects.toMatchObject({ code: 8 });
  });

  it("is there only if the deployment says so", async () => {
    const { client } = await launch({ BATON_GRPC_REFLECTION: "false" });
    expect((await new Reflection(client).finish()).code).toBe(12);
  });

  it("asks for a key where the server's metadata do", async () => {
    const wrong = await new Reflection(clientOf(), "v1", { "api-key": newKey().text }).finish();
    expect([wrong.code, wrong.metadata.getMap()["baton-code"]]).toEqual([16, "invalid_api_key"]);
    const { client } = await launch({ BATON_AUTH_OPEN: "health", BATON_RESTRICTED_APIS: "metadata:k=v" });
    const key = await fleet.make({ scopes: ["read"] });
    const header = { "triton-grpc-protocol-k": "v" };
    expect((await new Reflection(client, "v1", header).finish()).code).toBe(16);
    expect((await new Reflection(client, "v1", key.headers).finish()).details).toContain("triton-grpc-protocol-k");
    const good = new Reflection(client, "v1alpha", { ...key.headers, ...header });
    expect((await good.ask("services", "")).names).toContain(INFERENCE);
    expect((await good.finish()).code).toBe(0);
  });

  it("ends when the gateway stops, and does not hold it up", async () => {
    const { gateway, client } = await launch({ BATON_LINGER_MS: "0" });
    const reflection = new Reflection(client);
    await reflection.ask("services", "*");
    const stopped = gateway.terminate();
    expect((await reflection.ended).code).toBe(0);
    await stopped;
  });
});
