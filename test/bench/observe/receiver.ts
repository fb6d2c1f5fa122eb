/** A receiver of traces that takes all spans: a child that tells its address to its parent. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const server = createServer((request, reply) => {
  request.resume().on("end", () => reply.setHeader("content-type", "application/json").end("{}"));
});
server.listen(0, "127.0.0.1", () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`);
});
process.once("disconnect", () => process.exit());
