/** One large tensor over a line that takes 20 ms there and back. */
import { Proxy } from "../../support/fleet/proxy.js";
import { GrpcClient } from "../../protocols/grpc/client.js";

export interface LargeCost {
  readonly ms: number;
  readonly checked: number;
  readonly wrong: number;
}

const BYTES = 8 * 1024 * 1024;
const ONE_WAY_MS = 10;

export async function measureLarge(port: number): Promise<LargeCost> {
  const line = await Proxy.start(port);
  line.delay(ONE_WAY_MS);
  const client = new GrpcClient(`127.0.0.1:${line.port}`);
  try {
    // The connection and the code of both sides are warm.
    await client.call("ServerLive", {});
    const raw = Buffer.alloc(4 + BYTES, "x");
    raw.writeUInt32LE(BYTES);
    const since = performance.now();
    // The model does not exist, so its answer is a short refusal: the message goes one way.
    const { status } = await client.call("ModelInfer", {
      model_name: "none",
      inputs: [{ name: "INPUT", datatype: "BYTES", shape: [1, 1] }],
      raw_input_contents: [raw],
    });
    const ms = performance.now() - since;
    return { ms, checked: 1, wrong: status === 5 ? 0 : 1 };
  } finally {
    client.close();
    await line.dispose();
  }
}
