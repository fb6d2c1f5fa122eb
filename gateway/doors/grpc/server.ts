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
import { UnusableError } from "#shared/exit.js";
import type { Certificates } from "#shared/http/certificates.js";
import { delay, within } from "#shared/retry.js";
import type { Bodies } from "../../http/bodies.js";
import { FairStart } from "../../http/fair-start.js";
import type { Log } from "../../http/router.js";
import type { Exchange, Surroundings } from "./exchange.js";
import { HealthWatchers, type HealthWatcher } from "./health.js";
import {
  healthCheck,
  isReady,
  reflectionAccess,
  streamAccess,
  unaryMethods,
  type Message,
  type MethodParts,
  type UnaryMethod,
} from "./methods.js";
import { Leaving } from "./leaving.js";
import { exchangeOf, noteFailure, opener, type MethodTerms } from "./opening.js";
import { loadServices, type GrpcServices } from "./protocol.js";
import type { ReflectionCall } from "./reflection.js";
import { enlargeWindows, Sessions } from "./sessions.js";
import { codeOf, statusOf, stopping } from "./status.js";
import { StreamInfer, type StreamParts } from "./stream-infer.js";

export interface GrpcTerms extends Surroundings {
  readonly parts: MethodParts & Pick<StreamParts, "sequenceBacklog">;
  readonly bodies: Bodies;
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
/** Most bytes of a question of reflection or health, which names a service, or a file. */
const QUESTION_BYTES = 4_096;
/** Once the grace of a stopping gateway is over, its last statuses have so long to leave, in ms. */
const LAST_WORDS_MS = 500;

/** A call's parts, with what its handler asks of the server. */
interface Serving extends GrpcTerms {
  readonly parts: MethodParts & StreamParts;
}

/** @throws UnusableError if the port is taken */
export async function startGrpc(given: GrpcTerms): Promise<RunningGrpc> {
  const { shareOf } = given.guard;
  const fair = shareOf && new FairStart({ shareOf });
  let isCut = false;
  const parts = {
    ...given.parts,
    turn: (exchange: Exchange) => fair?.turn(() => exchange.asking()),
    isCut: () => isCut,
  };
  const terms: Serving = { ...given, parts };
  const services = loadServices();
  const methods = methodTerms(services, terms);
  const server = new Server({
    "grpc.max_receive_message_length": parts.limits.binaryBytes,
    "grpc.max_send_message_length": -1,
    "grpc.max_concurrent_streams": MOST_STREAMS,
    "grpc.keepalive_time_ms": terms.keepAliveMs,
    "grpc.keepalive_timeout_ms": terms.keepAliveTimeoutMs,
    "grpc.max_connection_age_ms": terms.maxAgeMs,
    "grpc.enable_channelz": 0,
    interceptors: [
      opener(
        () => ({ ...terms, sessions }),
        (path) => methods.get(path),
      ),
    ],
  });
  const streams = new Set<StreamInfer>();
  const health = new HealthWatchers(() => isReady(parts));
  const unary = Object.entries(unaryMethods).map(([name, method]) => [name, unaryCall(method, terms)]);
  server.addService(services.inference, {
    ...(Object.fromEntries(unary) as Record<string, UntypedHandleCall>),
    ModelStreamInfer: streamCall(terms, streams),
  });
  server.addService(services.health, {
    Check: unaryCall(healthCheck, terms),
    Watch: heldCall(terms, (call: HealthWatcher, { arrivals }) => {
      arrivals?.taken();
      health.add(call);
    }),
  });
  const reflection = terms.reflects ? await import("./reflection.js") : undefined;
  const endReflection = reflection?.reflect(server, services, (path, answer) => {
    methods.set(path, { access: reflectionAccess, mostBytes: QUESTION_BYTES, takesMany: true });
    return heldCall(terms, answer);
  });
  enlargeWindows(server);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const sessions = new Sessions(server);
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
      isCut = true;
      for (const stream of streams) stream.stop(stopping());
      await within(LAST_WORDS_MS, shut);
      // The library cuts no connection by itself, and a client that reads nothing closes none.
      for (const socket of sockets) socket.destroy();
      server.forceShutdown();
      sessions.close();
      await closed;
    },
  };
}

/** The terms of all methods by their paths. */
function methodTerms({ inference, health }: GrpcServices, { parts: { limits } }: Serving): Map<string, MethodTerms> {
  const { controlBytes, binaryBytes } = limits;
  const terms = new Map<string, MethodTerms>();
  for (const [name, access] of Object.entries(unaryMethods)) {
    const mostBytes = name === "ModelInfer" ? binaryBytes : controlBytes;
    terms.set(pathOf(inference, name), { access, mostBytes, takesMany: false });
  }
  const stream = { access: streamAccess, mostBytes: binaryBytes, takesMany: true };
  terms.set(pathOf(inference, "ModelStreamInfer"), stream);
  for (const name of ["Check", "Watch"]) {
    terms.set(pathOf(health, name), { access: healthCheck, mostBytes: QUESTION_BYTES, takesMany: false });
  }
  return terms;
}

/** Makes the handler of a unary method. */
function unaryCall(method: UnaryMethod, terms: Serving): handleUnaryCall<Message, Message> {
  const { parts } = terms;
  return (call, respond) => {
    const exchange = exchangeOf(call);
    const client = new Leaving(parts.isCut);
    // The library says so after every call, too, which by then has ended.
    call.once("cancelled", () => {
      if (exchange.hasEnded) return;
      client.leave();
      exchange.left();
    });
    exchange.bytesIn = lengthOf(call.request);
    const refuse = (error: unknown): void => {
      noteFailure(error, exchange, terms);
      respond(statusOf(error, exchange.requestId));
      exchange.end(codeOf(error));
    };
    const answer = async () => {
      if (method.admits === true) await parts.turn(exchange);
      return method.answer(call.request, exchange, parts, client);
    };
    answer()
      .then((message) => {
        exchange.bytesOut = lengthOf(message);
        respond(null, message, trailersOf(exchange));
        exchange.end(undefined);
      })
      .catch(refuse)
      // An answer that cannot be sent costs its call, and not the gateway.
      .catch((error: unknown) => refuse(new Error("the status cannot be sent", { cause: error })));
  };
}

function streamCall(terms: Serving, streams: Set<StreamInfer>): handleBidiStreamingCall<Buffer, Buffer> {
  return (call) => {
    const exchange = exchangeOf(call);
    const stream = new StreamInfer(call, exchange, terms.parts);
    streams.add(stream);
    const run = async () => {
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
function heldCall<C extends HealthWatcher | ReflectionCall>(
  terms: Serving,
  answer: (call: C, exchange: Exchange) => void,
): (call: C) => void {
  return (call) => {
    const exchange = exchangeOf(call);
    call.once("close", () => exchange.end(undefined));
    try {
      answer(call, exchange);
    } catch (error) {
      noteFailure(error, exchange, terms);
      exchange.end(codeOf(error));
      call.emit("error", statusOf(error, exchange.requestId));
    }
  };
}

function pathOf(service: ServiceDefinition, name: string): string {
  const method = service[name];
  if (method === undefined) throw new TypeError(`the protocol has no method ${name}`);
  return method.path;
}

function trailersOf({ requestId, answeredAs }: Exchange): Metadata {
  const metadata = new Metadata();
  metadata.set("x-request-id", requestId);
  if (answeredAs !== undefined) metadata.set("baton-request-id", answeredAs);
  return metadata;
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
