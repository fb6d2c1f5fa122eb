/**
 * Server reflection: tells tools the services and messages of the `.proto` files. The library's
 * handlers judge nobody, and answer each message as it comes. Here the caller is judged first, and
 * a message is read only when the client has taken the answers before.
 */
import { EventEmitter } from "node:events";
import { Transform, type Duplex } from "node:stream";
import type { handleBidiStreamingCall, MethodDefinition, Server, ServerDuplexStream } from "@grpc/grpc-js";
import { ReflectionService } from "@grpc/reflection";
import type { Message } from "./methods.js";
import type { GrpcServices } from "./protocol.js";

export type ReflectionCall = ServerDuplexStream<Message, Message>;
type Handler = handleBidiStreamingCall<Message, Message>;

/** Most bytes of a question, which names a service, a message or a file. */
const MOST_BYTES = 4_096;

/**
 * Adds the services of reflection, in both of their versions.
 * @param judged makes a handler that calls `answer` for callers who may ask
 * @returns a function that ends all calls
 */
export function reflect(
  server: Pick<Server, "addService">,
  { definitions }: Pick<GrpcServices, "definitions">,
  judged: (path: string, answer: (call: ReflectionCall) => void) => Handler,
): () => void {
  const calls = new Set<ReflectionCall>();
  const begin = (call: ReflectionCall, handler: Handler): void => {
    calls.add(call);
    call.once("close", () => calls.delete(call));
    const stream = call as unknown as Duplex;
    stream.pipe(answering(handler)).pipe(stream);
  };
  new ReflectionService(definitions).addToServer({
    addService(service, handlers) {
      const methods = Object.entries(service);
      const answered = methods.map(([name, { path }]) => [
        name,
        judged(path, (call) => begin(call, handlers[name] as Handler)),
      ]);
      server.addService(
        Object.fromEntries(methods.map(([name, method]) => [name, ofShortMessages(method)])),
        Object.fromEntries(answered) as Record<string, Handler>,
      );
    },
  });
  return () => {
    for (const call of calls) call.end();
  };
}

/** The answer repeats the question, so a long one would take memory twice. */
function ofShortMessages(method: MethodDefinition<Message, Message>): MethodDefinition<Message, Message> {
  return {
    ...method,
    requestDeserialize(bytes) {
      if (bytes.length > MOST_BYTES) throw new RangeError(`the message is longer than ${MOST_BYTES} bytes`);
      return method.requestDeserialize(bytes);
    },
  };
}

/** Makes a stream of the answers of a handler, which gets each message in its turn. */
function answering(handler: Handler): Transform {
  const asked = new EventEmitter();
  const answers = new Transform({
    objectMode: true,
    transform(message: Message, _, done) {
      asked.emit("data", message);
      done();
    },
  });
  const write = (answer: Message): boolean => answers.push(answer);
  handler(Object.assign(asked, { write }) as unknown as ReflectionCall);
  return answers;
}
