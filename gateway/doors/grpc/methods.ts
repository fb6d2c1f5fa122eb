/**
 * The unary methods of Triton's service, declared: who may call each, and its answer. The server
 * and the test of all doors read this table. ModelStreamInfer has its own file (stream-infer.ts).
 */
import { fixedError, InferenceError } from "#shared/errors.js";
import { readMembers } from "../../api/endpoint/members.js";
import type { Api } from "../../auth/restricted-apis.js";
import type { Scope } from "../../auth/owner/scopes.js";
import type { ModelDirectory, ModelName } from "../../fleet/models.js";
import type { StatisticsService } from "../../fleet/statistics.js";
import type { Fleet } from "../../fleet/watch.js";
import {
  isServerReady,
  modelConfig,
  modelMetadata,
  repositoryIndex,
  serverMetadata,
} from "../../formats/kserve/metadata.js";
import type { OpenGroup } from "#shared/listening/settings.js";
import type { LogService } from "../../service/observing/log-settings.js";
import type { TraceService } from "../../service/observing/trace-settings.js";
import type { RepositoryService } from "../../service/observing/repository.js";
import { logMembers, traceMembers } from "../kserve-http/observing.js";
import { DEPENDENTS, loadConfig } from "../kserve-http/repository.js";
import type { Exchange } from "./exchange.js";
import { modelInfer, type InferParts } from "./infer.js";
import type { Leaving } from "./leaving.js";

/** Who may call a method, in the terms of the paths of HTTP. */
export interface Access {
  readonly api: Api;
  /** Undefined if the answer is the same for every tenant. */
  readonly right?: Scope;
  /** What a key must allow if the answer is the same for every tenant; absent: `read`. */
  readonly otherRight?: Scope;
  readonly open?: OpenGroup;
  /** Whether calls admit requests, which count in the rates of their owner. */
  readonly admits?: boolean;
}

/** The parts that answer calls. */
export interface MethodParts extends InferParts {
  readonly fleet: Fleet;
  readonly statistics: StatisticsService;
  readonly traces: TraceService;
  readonly logging: LogService;
  readonly repository: RepositoryService;
  /** Whether the gateway can admit requests. */
  readonly isReady: () => boolean;
  readonly serverName: string;
  readonly version: string;
}

/** A message: an object with the fields of the protocol, or the bytes of one. */
export type Message = object;

export interface UnaryMethod extends Access {
  /** @param client leaves when it cancels the call, or its deadline passes */
  answer(asked: Message, exchange: Exchange, parts: MethodParts, client: Leaving): Message | Promise<Message>;
}

interface Named {
  readonly name: string;
  readonly version: string;
}

const metadata = { api: "metadata", open: "metadata" } as const;
const health = { api: "health", open: "health" } as const;
const repository = { api: "model-repository" } as const;
const control = { ...repository, right: "operator" } as const;
const inference = { api: "inference", right: "infer", admits: true } as const;
const memory = { api: "shared-memory" } as const;

/**
 * Whether a repository has the model, and no worker serves it. Triton's examples ask for it after
 * an unload, and take an error for a fault of the server.
 */
function isUnloaded(directory: ModelDirectory, model: string, version: string | undefined): boolean {
  const has = (models: readonly { readonly name: string }[]): boolean => models.some(({ name }) => name === model);
  if (has(directory.all())) return false;
  return has(directory.idle()) || (version === undefined && has(directory.failed()));
}

export const unaryMethods: Readonly<Record<string, UnaryMethod>> = {
  ServerLive: { ...health, answer: () => ({ live: true }) },
  ServerReady: { ...health, answer: (_, __, parts) => ({ ready: isReady(parts) }) },
  ModelReady: {
    ...metadata,
    api: "health",
    answer(asked, exchange, { fleet }) {
      const directory = exchange.models(fleet.directory);
      const { model, version } = nameIn(asked as Named);
      if (isUnloaded(directory, model, version)) return { ready: false };
      return { ready: directory.isServed(directory.find(model, version)) };
    },
  },
  ServerMetadata: { ...metadata, answer: (_, __, { serverName, version }) => serverMetadata(serverName, version) },
  ModelMetadata: { ...metadata, answer: ofModel(modelMetadata) },
  ModelConfig: {
    api: "model-config",
    answer: async (asked, ...rest) => ({ config: await ofModel(modelConfig)(asked, ...rest) }),
  },
  ModelStatistics: {
    api: "statistics",
    async answer(asked, exchange, { statistics }) {
      const named = nameIn(asked as Named);
      const directory = exchange.models(statistics.directory);
      return statistics.read(directory, named.model === "" ? undefined : named);
    },
  },
  RepositoryIndex: {
    ...repository,
    answer(asked, exchange, { fleet }) {
      const { repository_name: repository, ready } = asked as { repository_name: string; ready: boolean };
      refuseRepository(repository);
      return { models: repositoryIndex(exchange.models(fleet.directory), ready) };
    },
  },
  RepositoryModelLoad: {
    ...control,
    async answer(asked, exchange, { repository }, client) {
      const { model_name: model, parameters } = controlIn(asked, repository);
      await repository.load(exchange.caller, model, loadConfig(parameters, asText), client);
      return {};
    },
  },
  RepositoryModelUnload: {
    ...control,
    async answer(asked, exchange, { repository }, client) {
      const { model_name: model, parameters } = controlIn(asked, repository);
      const dependents = parameters[DEPENDENTS];
      const withSteps = dependents !== undefined && asFlag(DEPENDENTS, dependents);
      await repository.unload(exchange.caller, model, withSteps, client);
      return {};
    },
  },
  SystemSharedMemoryStatus: { ...memory, answer: () => ({ regions: {} }) },
  SystemSharedMemoryRegister: { ...memory, answer: refuseSharedMemory },
  SystemSharedMemoryUnregister: { ...memory, answer: refuseSharedMemory },
  CudaSharedMemoryStatus: { ...memory, answer: () => ({ regions: {} }) },
  CudaSharedMemoryRegister: { ...memory, answer: refuseSharedMemory },
  CudaSharedMemoryUnregister: { ...memory, answer: refuseSharedMemory },
  TraceSetting: { api: "trace", right: "operator", answer: traceSetting },
  LogSettings: { api: "logging", right: "operator", answer: logSettings },
  ModelInfer: {
    ...inference,
    answer: (asked, exchange, parts, client) => modelInfer(asked as Buffer, exchange, parts, client),
  },
};

/** The check of gRPC's own health protocol. As with Triton, the name of a service means nothing. */
export const healthCheck: UnaryMethod = { ...health, answer: (_, __, parts) => healthOf(isReady(parts)) };

export interface Health {
  readonly status: "SERVING" | "NOT_SERVING";
}

export function healthOf(isServing: boolean): Health {
  return { status: isServing ? "SERVING" : "NOT_SERVING" };
}

/** Who may ask for the services and messages: callers who may ask for the server's metadata. */
export const reflectionAccess: Access = metadata;

/** Who may call ModelStreamInfer. */
export const streamAccess: Access = inference;

export function isReady({ fleet, isReady: admits }: Pick<MethodParts, "fleet" | "isReady">): boolean {
  return isServerReady(fleet.directory, admits());
}

/** An empty version is the latest. */
function nameIn({ name, version }: Named): ModelName {
  return { model: name, version: version === "" ? undefined : version };
}

function ofModel(
  describe: (directory: ModelDirectory, name: string, version: string | undefined) => object,
): UnaryMethod["answer"] {
  return (asked, exchange, { fleet }) => {
    const { model, version } = nameIn(asked as Named);
    return describe(exchange.models(fleet.directory), model, version);
  };
}

function refuseRepository(name: string): void {
  if (name !== "") throw fixedError("unsupported", "repositoryName");
}

interface ControlAsked {
  readonly repository_name: string;
  readonly model_name: string;
  readonly parameters: Readonly<Record<string, ControlParameter>>;
}

interface ControlParameter {
  readonly parameter_choice?: string;
  readonly string_param?: string;
  readonly bool_param?: boolean;
}

/** @throws InferenceError if workers load and unload models by themselves */
function controlIn(asked: Message, { isExplicit }: RepositoryService): ControlAsked {
  const control = asked as ControlAsked;
  refuseRepository(control.repository_name);
  if (!isExplicit) throw new InferenceError("unavailable", fixedError("unsupported", "modelControl").message);
  return control;
}

function asFlag(name: string, { parameter_choice: choice, bool_param: flag = false }: ControlParameter): boolean {
  if (choice === "bool_param") return flag;
  throw new InferenceError(
    "invalid_argument",
    `invalid value type for unload parameter '${name}', expected bool_param.`,
  );
}

function asText(name: string, { parameter_choice: choice, string_param: text = "" }: ControlParameter): string {
  if (choice === "string_param") return text;
  throw new InferenceError(
    "invalid_argument",
    `invalid value type for load parameter '${name}', expected string_param.`,
  );
}

function refuseSharedMemory(): never {
  throw fixedError("unsupported", "sharedMemory");
}

interface TraceAsked {
  readonly settings: Readonly<Record<string, { readonly value: readonly string[] }>>;
  readonly model_name: string;
}

/** A setting without a value is reset, as with Triton. */
async function traceSetting(asked: Message, exchange: Exchange, { fleet, traces }: MethodParts): Promise<Message> {
  const { settings, model_name: name } = asked as TraceAsked;
  const model = name === "" ? undefined : exchange.models(fleet.directory).find(name).name;
  const given = Object.entries(settings).map(([key, { value }]) => {
    if (value.length === 0) return [key, null];
    return [key, key === "trace_level" || value.length > 1 ? value : value[0]];
  });
  const shown =
    given.length === 0
      ? traces.show(model)
      : await change(Object.fromEntries(given) as object, traceMembers, ({ trace_level: level, trace_rate: rate }) =>
          traces.change(exchange.caller, model, { level, rate }),
        );
  return { settings: mapped(shown, (value) => ({ value: [value].flat().map(String) })) };
}

interface LogAsked {
  readonly settings: Readonly<Record<string, Readonly<Record<string, unknown>> & { parameter_choice: string }>>;
}

async function logSettings(asked: Message, exchange: Exchange, { logging }: MethodParts): Promise<Message> {
  const { settings } = asked as LogAsked;
  const given = mapped(settings, (value) => value[value.parameter_choice]);
  const shown =
    Object.keys(given).length === 0
      ? logging.show()
      : await change(given, logMembers, (members) => logging.change(exchange.caller, members));
  const choices = { boolean: "bool_param", number: "uint32_param", string: "string_param" } as const;
  return {
    settings: mapped(shown, (value) => ({ [choices[typeof value as keyof typeof choices]]: value })),
  };
}

/** Reads changed settings as HTTP does. */
function change<M extends Parameters<typeof readMembers>[1], T>(
  given: object,
  members: M,
  make: (values: ReturnType<typeof readMembers<M>>) => T,
): T {
  return make(readMembers(Buffer.from(JSON.stringify(given)), members));
}

function mapped<V, T>(values: Readonly<Record<string, V>> | object, make: (value: V) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, make(value as V)]));
}
