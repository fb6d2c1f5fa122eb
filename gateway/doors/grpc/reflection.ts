/**
 * Server reflection: tells tools the services and messages of the `.proto` files. The library's
 * handlers answer each message as it comes. Here a message is read only when the client has taken
 * the answers before.
 */
import { EventEmitter } from "node:events";
import { Transform, type Duplex } from "node:stream";
import type { handleBidiStreamingCall, Server, ServerDuplexStream } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import type { Exchange } from "./exchange.js";
import type { Message } from "./methods.js";
import type { GrpcServices } from "./protocol.js";

export type ReflectionCall = ServerDuplexStream<Message, Message>;
type Handler = handleBidiStreamingCall<Message, Message>;

/**
 * Adds the services of reflection, in both of their versions.
 * @param held makes the handler of a call that `answer` answers
 * @returns a function that ends all calls
 */
export function reflect(
  server: Pick<Server, "addService">,
  { definitions }: Pick<GrpcServices, "definitions">,
  held: (path: string, answer: (call: ReflectionCall, exchange: Exchange) => void) => Handler,
): () => void {
  const calls = new Set<ReflectionCall>();
  const begin = (call: ReflectionCall, handler: Handler, { arrivals }: Exchange): void => {
    calls.add(call);
    call.once("close", () => calls.delete(call));
    const stream = call as unknown as Duplex;
    stream.pipe(answering(handler, () => arrivals?.taken())).pipe(stream);
  };
  new ReflectionService(definitions).addToServer({
    addService(service, handlers) {
      const methods = Object.entries(service);
      const answered = methods.map(([name, { path }]) => [
        name,
        held(path, (call, exchange) => begin(call, handlers[name] as Handler, exchange)),
      ]);
      server.addService(service, Object.fromEntries(answered) as Record<string, Handler>);
    },
  });
  return () => {
    for (const call of calls) call.end();
  };
}

/**
 * Makes a stream of the answers of a handler, which gets each message in its turn.
 * @param taken called when the handler has taken a message
 */
function answering(handler: Handler, taken: () => void): Transform {
  const asked = new EventEmitter();
  const answers = new Transform({
    objectMode: true,
    transform(message: Message, _, done) {
      taken();
      asked.emit("data", message);
      done();
    },
  });
  const write = (answer: Message): boolean => answers.push(answer);
  handler(Object.assign(asked, { write }) as unknown as ReflectionCall);
  return answers;
}
