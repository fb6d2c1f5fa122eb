/**
 * The server of gRPC: its services on a port of its own, over connections of ours, so that they
 * have the certificate and the limits of HTTP's.
 */
import { once } from "node:events";
import { createServer, type AddressInfo, type Server as TcpServer, type Socket } from "node:net";
import {
  Metadata,
  Server,
  ServerCredentials,
  type handleBidiStreamingCall,
  type handleUnaryCall,
  type ServiceDefinition,
  type UntypedHandleCall,
} from "@grpc/grpc-js";
import { fixedError } from "#shared/errors.js";
import { UnusableError } from "#shared/exit.js";
import type { Certificates } from "#shared/http/certificates.js";
import { delay, within } from "#shared/retry.js";
import { isRefusal } from "../../formats/errors.js";
import { loadServices } from "./protocol.js";
import type { Log } from "../../http/router.js";
import { Exchange, type Surroundings } from "./exchange.js";
import { HealthWatchers, type HealthWatcher } from "./health.js";
import {
  healthCheck,
  isReady,
  reflectionAccess,
  streamAccess,
  unaryMethods,
  type Access,
  type Message,
  type MethodParts,
  type UnaryMethod,
} from "./methods.js";
import { Leaving } from "./leaving.js";
import type { ReflectionCall } from "./reflection.js";
import { enlargeWindows, Sessions } from "./sessions.js";
import { codeOf, statusOf, stopping } from "./status.js";
import { StreamInfer, type StreamParts } from "./stream-infer.js";

export interface GrpcTerms extends Surroundings {
  readonly parts: MethodParts & StreamParts;
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Whether nobody has chosen the port: then another does as well. */
  readonly isUsualPort: boolean;
  /** If present, the server speaks TLS alone. */
  readonly certificates: Certificates | undefined;
  /** How long a connection may last, in ms; then its client connects anew, perhaps elsewhere. */
  readonly maxAgeMs: number;
  /** Time between two pings of an idle connection, and how long an answer may take, in ms. */
  readonly keepAliveMs: number;
  readonly keepAliveTimeoutMs: number;
  /** Whether clients may ask for the services and messages. */
  readonly reflects: boolean;
  readonly log: Log;
}

export interface RunningGrpc {
  readonly port: number;
  readonly connections: () => number;
  /**
   * Says NOT_SERVING and goes on for `lingerMs`, then takes no more calls, and lets those under way
   * finish for `graceMs`.
   */
  close(graceMs: number, lingerMs: number): Promise<void>;
}

/** Most connections, as for HTTP. */
const MOST_CONNECTIONS = 10_000;
/** Streams of a connection that may be open at once. */
const MOST_STREAMS = 100;
const BACKLOG = 4_096;
const HANDSHAKE_MS = 10_000;
/** Metadata of a call, in bytes, as for the head of a request. */
const MOST_METADATA = 16 * 1024;

/** @throws UnusableError if the port is taken */
export async function startGrpc(terms: GrpcTerms): Promise<RunningGrpc> {
  const { parts } = terms;
  const server = new Server({
    "grpc.max_receive_message_length": parts.limits.binaryBytes,
    "grpc.max_send_message_length": -1,
    "grpc.max_concurrent_streams": MOST_STREAMS,
    "grpc.keepalive_time_ms": terms.keepAliveMs,
    "grpc.keepalive_timeout_ms": terms.keepAliveTimeoutMs,
    "grpc.max_connection_age_ms": terms.maxAgeMs,
    "grpc.enable_channelz": 0,
  });
  const streams = new Set<StreamInfer>();
  const health = new HealthWatchers(() => isReady(parts));
  const services = loadServices();
  const unary = Object.entries(unaryMethods).map(([name, method]) => [
    name,
    unaryCall(pathOf(services.inference, name), method, terms),
  ]);
  server.addService(services.inference, {
    ...(Object.fromEntries(unary) as Record<string, UntypedHandleCall>),
    ModelStreamInfer: streamCall(pathOf(services.inference, "ModelStreamInfer"), terms, streams),
  });
  server.addService(services.health, {
    Check: unaryCall(pathOf(services.health, "Check"), healthCheck, terms),
    Watch: judgedCall(pathOf(services.health, "Watch"), healthCheck, terms, (call: HealthWatcher) => health.add(call)),
  });
  const reflection = terms.reflects ? await import("./reflection.js") : undefined;
  const endReflection = reflection?.reflect(server, services, (path, answer) =>
    judgedCall(path, reflectionAccess, terms, answer),
  );
  enlargeWindows(server);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const sessions = new Sessions(server, () => parts.bodies.room({ tenant: "" }));
  const sockets = new Set<Socket>();
  const listener = listenerOf(terms, sockets, (socket) => injector.injectConnection(socket));
  await listening(listener, terms);
  return {
    port: (listener.address() as AddressInfo).port,
    connections: () => sessions.size,
    async close(graceMs, lingerMs) {
      health.look();
      await delay(lingerMs);
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
      health.close();
      endReflection?.();
      const drained = [...streams].map((stream) => stream.drain(stopping()));
      const shut = new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
      await within(graceMs, Promise.all([shut, ...drained]));
      for (const stream of streams) stream.stop(stopping());
      server.forceShutdown();
      for (const socket of sockets) socket.destroySoon();
      sessions.close();
      await closed;
    },
  };
}

/** Makes the handler of a unary method. */
function unaryCall(path: string, method: UnaryMethod, terms: GrpcTerms): handleUnaryCall<Message, Message> {
  return (call, respond) => {
    const exchange = new Exchange(terms, path, call.metadata, call.getPeer());
    const client = new Leaving();
    // The library says so after every call, too, which by then has ended.
    call.once("cancelled", () => {
      if (exchange.hasEnded) return;
      client.leave();
      exchange.end("cancelled", false);
    });
    exchange.bytesIn = lengthOf(call.request);
    const answer = async () => {
      checkMetadata(exchange);
      await exchange.judge(method);
      return method.answer(call.request, exchange, terms.parts, client);
    };
    answer().then(
      (message) => {
        exchange.bytesOut = lengthOf(message);
        respond(null, message, trailersOf(exchange));
        exchange.end(undefined);
      },
      (error: unknown) => {
        noteFailure(error, exchange, terms);
        respond(statusOf(error, exchange.requestId));
        exchange.end(codeOf(error));
      },
    );
  };
}

function streamCall(
  path: string,
  terms: GrpcTerms,
  streams: Set<StreamInfer>,
): handleBidiStreamingCall<Buffer, Buffer> {
  return (call) => {
    const exchange = new Exchange(terms, path, call.metadata, call.getPeer());
    const stream = new StreamInfer(call, exchange, terms.parts);
    streams.add(stream);
    const run = async () => {
      checkMetadata(exchange);
      await exchange.judge(streamAccess);
      const leave = exchange.countReader();
      const forget = exchange.watchKey((error) => stream.fail(error));
      try {
        await stream.run();
      } finally {
        forget();
        leave();
      }
    };
    run()
      .catch((error: unknown) => {
        noteFailure(error, exchange, terms);
        stream.fail(error);
      })
      .finally(() => streams.delete(stream));
  };
}

/** Makes the handler of a call whose answers take as long as its client wants. */
function judgedCall<C extends HealthWatcher | ReflectionCall>(
  path: string,
  access: Access,
  terms: GrpcTerms,
  answer: (call: C) => void,
): (call: C) => void {
  return (call) => {
    const exchange = new Exchange(terms, path, call.metadata, call.getPeer());
    call.once("close", () => exchange.end(undefined));
    const judged = async () => {
      checkMetadata(exchange);
      await exchange.judge(access);
      answer(call);
    };
    judged().catch((error: unknown) => {
      noteFailure(error, exchange, terms);
      exchange.end(codeOf(error));
      call.emit("error", statusOf(error, exchange.requestId));
    });
  };
}

function pathOf(service: ServiceDefinition, name: string): string {
  const method = service[name];
  if (method === undefined) throw new TypeError(`the protocol has no method ${name}`);
  return method.path;
}

/** Notes a refusal of a key in the audit, and a bug in the log. */
function noteFailure(error: unknown, exchange: Exchange, { log }: Pick<GrpcTerms, "log">): void {
  if (isRefusal(error)) exchange.refused(error);
  else log({ err: error, requestId: exchange.requestId, path: exchange.head.url }, "request handler failed");
}

function trailersOf({ requestId, answeredAs }: Exchange): Metadata {
  const metadata = new Metadata();
  metadata.set("x-request-id", requestId);
  if (answeredAs !== undefined) metadata.set("baton-request-id", answeredAs);
  return metadata;
}

/** @throws InferenceError */
function checkMetadata({ head }: Exchange): void {
  let length = 0;
  for (const name in head.headers) length += name.length + (head.headers[name]?.length ?? 0);
  if (length > MOST_METADATA) throw fixedError("invalid_argument", "headTooLarge");
}

/** The bytes of a message of inference; other messages are small. */
function lengthOf(message: Message): number {
  return Buffer.isBuffer(message) ? message.length : 0;
}

/** Makes the listening side. Its connections speak HTTP/2, inside TLS if there is a certificate. */
function listenerOf({ certificates }: GrpcTerms, sockets: Set<Socket>, serve: (socket: Socket) => void): TcpServer {
  const admit = (socket: Socket): boolean => {
    if (sockets.size >= MOST_CONNECTIONS) {
      socket.destroy();
      return false;
    }
    sockets.add(socket);
    // A connection that is cut is an event, and no fault.
    socket.on("error", () => undefined);
    socket.once("close", () => sockets.delete(socket));
    socket.setNoDelay(true);
    return true;
  };
  const plain = (socket: Socket): void => {
    if (admit(socket)) serve(socket);
  };
  if (certificates === undefined) return createServer(plain);
  const secure = certificates.server({ ALPNProtocols: ["h2"], handshakeTimeout: HANDSHAKE_MS });
  // Node's own listener would speak HTTP/1.
  secure.removeAllListeners("secureConnection");
  secure.on("connection", (socket: Socket) => admit(socket));
  secure.on("secureConnection", serve);
  secure.on("tlsClientError", (_, socket) => socket.destroy());
  return secure;
}

async function listening(listener: TcpServer, { host, port, isUsualPort, log }: GrpcTerms): Promise<void> {
  const listen = async (at: number): Promise<void> => {
    listener.listen({ host, port: at, backlog: BACKLOG });
    await once(listener, "listening");
  };
  try {
    await listen(port);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EADDRINUSE") {
      const why = code ?? String(error);
      throw new UnusableError(`gRPC cannot listen on ${host}:${port} (${why}): change BATON_HOST or BATON_GRPC_PORT.`);
    }
    if (!isUsualPort) {
      throw new UnusableError(`BATON_GRPC_PORT is ${port}, and another program has that port on ${host}.`);
    }
    log({ port }, "the usual port for gRPC is taken, so it is at another port");
    await listen(0);
  }
}
