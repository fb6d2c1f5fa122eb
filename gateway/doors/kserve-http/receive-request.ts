/** Receives the body of an infer or generate request over HTTP, and reads the request. */
import type { IncomingMessage } from "node:http";
import { fixedError } from "#shared/errors.js";
import { jsonBytesOf, type BodyTerms } from "../../http/bodies.js";
import type { ModelExchange } from "./exchange.js";
import type { Reading, ReadRequest } from "../../formats/kserve/read-request.js";

/** @throws InferenceError */
export function receiveRequest(
  {
    bodies,
    reader,
    judgeAgain,
    tenant,
    budget,
  }: Pick<ModelExchange, "bodies" | "reader" | "judgeAgain" | "tenant" | "budget">,
  incoming: IncomingMessage,
  terms: Omit<BodyTerms, "owner">,
  reading: Reading,
): Promise<ReadRequest> {
  const stillWanted = (): void => {
    if (incoming.socket.destroyed) throw fixedError("cancelled", "clientGone");
  };
  const { maxBytes, jsonBytes, encoding } = terms;
  const owner = { tenant, most: budget?.bodyBytes };
  return bodies.use(incoming, { maxBytes, jsonBytes, encoding, owner }, async (body) => {
    await judgeAgain();
    return reader.read(body, jsonBytesOf(body, terms), reading, stillWanted);
  });
}
