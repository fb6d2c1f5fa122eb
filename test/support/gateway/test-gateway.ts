/**
 * The gateway's HTTP edge in this process, on a free port, without Redis, NATS or workers. Tensor
 * models give their inputs back, and generators answer with records that the test writes.
 */
import { afterAll, afterEach, beforeAll } from "vitest";
import type {
  StreamingRequest,
  GenerationRequest,
  Inference,
  InferenceOutcome,
  InferenceRequest,
} from "../../../gateway/admission/inference.js";
import { isGeneration } from "../../../gateway/admission/inference.js";
import { buildApp, type AppOptions } from "../../../gateway/app.js";
import { directoryOf } from "../../../gateway/fleet/models.js";
import { defaultLimits } from "../../../gateway/formats/limits.js";
import { RepositoryService } from "../../../gateway/service/observing/repository.js";
import { startServer, type RunningServer, type ServerOptions } from "../../../gateway/server.js";
import type { ServedModel } from "#shared/contract/announcement.js";
import { announcementOf, echoModels, generatorModel, servedModel } from "../../fixtures/served-models.js";
import { hello, RecordedStream } from "./recorded-stream.js";

export interface TestGatewayPlan extends Partial<AppOptions> {
  readonly models?: readonly ServedModel[];
  readonly server?: Partial<ServerOptions>;
}

/** A model that failed to load. */
const failed = [{ name: "broken", version: "1", reason: "bad model" }];

/** A generator that chats, another without a chat template, and a tensor model. */
export const generators: readonly ServedModel[] = [
  generatorModel("talk"),
  generatorModel("mute", { chat: false }),
  servedModel("tensor"),
];

export class TestGateway {
  /** The requests that `infer` got, oldest first. */
  readonly admitted: InferenceRequest[] = [];
  /** Every generation that the gateway admitted, oldest first. */
  readonly streams: RecordedStream[] = [];
  /** How many requests were parsed on the socket. */
  plainly = 0;
  readonly logged: { fields: Readonly<Record<string, unknown>>; line: string }[] = [];
  /** Answers requests instead of the echo. */
  answer: Inference["infer"] | undefined;
  /** Writes the records of each later generation. A script that throws refuses the generation. */
  script: (request: GenerationRequest, stream: RecordedStream) => void = hello;
  #arrivals: ((stream: RecordedStream) => void)[] = [];
  #server: RunningServer | undefined;

  static async start(plan: TestGatewayPlan = {}): Promise<TestGateway> {
    const gateway = new TestGateway();
    await gateway.open(plan);
    return gateway;
  }

  async open({ models = echoModels, server, ...options }: TestGatewayPlan): Promise<void> {
    const directory = directoryOf([announcementOf([...models], failed)]);
    const log = (fields: Readonly<Record<string, unknown>>, line: string): void =>
      void this.logged.push({ fields, line });
    const app = buildApp({
      fleet: {
        directory,
        describe: () => Promise.resolve({ workers: [], steps: 2n ** 60n }),
        targets: () => Promise.resolve([]),
        history: () => Promise.resolve({ step_ms: 5_000, at: [], series: {} }),
        loadOf: () => Promise.resolve({ requests: 0, bytes: 0 }),
      },
      inference: {
        infer: (request) => this.#infer(request),
        inferLater: () => Promise.reject(new Error("this gateway keeps no outcomes")),
        generate: (request) => this.#generate(generationOf(request)),
      },
      // No worker follows a client's wish, so that the service refuses before it asks Redis.
      repository: new RepositoryService({
        redis: undefined as never,
        fleet: { control: { workers: [], lapsed: [], refusals: new Map() } },
        hasTenantHeader: false,
      }),
      isReady: () => true,
      limits: defaultLimits,
      serverName: "baton",
      version: "1.2.3",
      log,
      ...options,
    });
    const { plain } = app;
    if (plain !== undefined) {
      const find: typeof plain.find = (head) => {
        const answer = plain.find(head);
        if (answer === undefined || answer instanceof Promise) return answer;
        return (body, client) => {
          this.plainly++;
          return answer(body, client);
        };
      };
      Object.assign(app, { plain: { ...plain, find } });
    }
    this.#server = await startServer(app, { port: 0, host: "127.0.0.1", log, ...server });
  }

  get server(): RunningServer {
    if (this.#server === undefined) throw new Error("the gateway has not been started");
    return this.#server;
  }

  get port(): number {
    return this.server.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /**
   * The only generation.
   * @throws Error if there are none or several
   */
  only(): RecordedStream {
    const [stream, ...others] = this.streams;
    if (stream === undefined || others.length > 0) throw new Error(`${this.streams.length} generations were admitted`);
    return stream;
  }

  /** Resolves with the next generation that the gateway admits. */
  next(): Promise<RecordedStream> {
    return new Promise((resolve) => this.#arrivals.push(resolve));
  }

  /** Forgets all requests and log lines, and answers as at first. */
  reset(): void {
    for (const list of [this.admitted, this.streams, this.logged]) list.length = 0;
    this.plainly = 0;
    this.answer = undefined;
    this.script = hello;
  }

  #infer(request: InferenceRequest): Promise<InferenceOutcome> {
    this.admitted.push(request);
    return this.answer === undefined ? Promise.resolve(echo(request)) : this.answer(request);
  }

  async #generate(request: GenerationRequest): Promise<RecordedStream> {
    await Promise.resolve();
    const stream = new RecordedStream(`r${this.streams.length}.0.1.${request.model.name}`, request);
    this.script(request, stream);
    this.streams.push(stream);
    for (const arrived of this.#arrivals.splice(0)) arrived(stream);
    return stream;
  }
}

/**
 * One gateway for all tests of a file, which starts before the first test and resets after each.
 */
export function useGateway(plan: TestGatewayPlan = {}): TestGateway {
  const gateway = new TestGateway();
  beforeAll(() => gateway.open(plan));
  afterEach(() => gateway.reset());
  afterAll(() => gateway.server.close(0));
  return gateway;
}

/** Gives inputs back as the outputs of the same numbers, if the request asks for these outputs. */
/** No model of these gateways is decoupled. */
function generationOf(request: StreamingRequest): GenerationRequest {
  if (!isGeneration(request)) throw new TypeError("a decoupled request");
  return request;
}

function echo({ model, inputs, outputs }: InferenceRequest): InferenceOutcome {
  const tensors = inputs.map((tensor) => ({ ...tensor, name: tensor.name.replace("INPUT", "OUTPUT") }));
  return { kind: "result", tensors: tensors.filter(({ name }) => outputs.includes(name)), version: model.version };
}
