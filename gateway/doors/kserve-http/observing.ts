/** Triton's paths to the settings of traces and of the log. */
import { z } from "zod";
import { InferenceError } from "#shared/errors.js";
import { asArray, asBoolean, asSize, asString } from "#shared/json/members.js";
import type { JsonValue } from "#shared/json/parse.js";
import type { Asked } from "../../api/endpoint/asked.js";
import { endpointsOf } from "../../api/endpoint/endpoint.js";
import type { Member } from "../../api/endpoint/members.js";
import { modelOf } from "../../api/endpoint/model-path.js";
import type { Fleet } from "../../fleet/watch.js";
import { jsonReply } from "../../formats/reply.js";
import type { LogService } from "../../service/observing/log-settings.js";
import { fixedTraces, type TraceService } from "../../service/observing/trace-settings.js";
import type { TraceLevel } from "../../trace/rates.js";

/** The parts that answer these paths. */
export interface ObservingParts {
  readonly fleet: Pick<Fleet, "directory">;
  readonly traces: TraceService;
  readonly logging: LogService;
}

const trace = endpointsOf<ObservingParts>("trace");
const ofLog = endpointsOf<ObservingParts>("logging");

const tracesShape = () =>
  z.strictObject({
    trace_level: z.array(z.enum(["TIMESTAMPS", "OFF"])),
    trace_rate: z.string(),
    trace_count: z.string(),
    log_frequency: z.string(),
    trace_file: z.string(),
    trace_mode: z.string(),
  });

const logShape = () =>
  z.strictObject({
    log_file: z.string(),
    log_info: z.boolean(),
    log_warning: z.boolean(),
    log_error: z.boolean(),
    log_verbose_level: z.number(),
    log_format: z.string(),
  });

function orNull<T>(read: (value: JsonValue, name: string) => T): (value: JsonValue, name: string) => T | null {
  return (value, name) => (value === null ? null : read(value, name));
}

const traceLevel: Member<TraceLevel | null> = {
  schema: { type: ["array", "null"], items: { type: "string", enum: ["TIMESTAMPS", "OFF"] } },
  read: orNull((value, name) => {
    const [level, ...others] = asArray(value, name).map((one) => asString(one, name));
    if (others.length === 0 && (level === "TIMESTAMPS" || level === "OFF")) return level;
    throw new InferenceError("invalid_argument", `'${name}' must be ["TIMESTAMPS"] or ["OFF"]`);
  }),
};

const traceRate: Member<string | null> = {
  schema: { type: ["string", "null"], description: "one request of so many; 0: only if its client records the trace" },
  read: orNull((value, name) => {
    const text = asString(value, name);
    if (/^(?:0|[1-9]\d{0,8})$/.test(text)) return text;
    throw new InferenceError("invalid_argument", `'${name}' must be a whole number from 0 to 999999999`);
  }),
};

/** A member of Triton with one value, which a client may send back. */
function fixed(name: keyof typeof fixedTraces): Member<null> {
  const only = fixedTraces[name];
  return {
    schema: { type: ["string", "null"], enum: [only, null] },
    read: orNull((value) => {
      if (asString(value, name) === only) return null;
      throw new InferenceError("unsupported", `'${name}' cannot be changed`);
    }),
  };
}

const traceFile: Member<never> = {
  schema: { type: "string", description: "cannot be changed" },
  read(_, name) {
    throw new InferenceError("unsupported", `'${name}' cannot be changed`);
  },
};

export const traceMembers = {
  trace_level: traceLevel,
  trace_rate: traceRate,
  trace_count: fixed("trace_count"),
  log_frequency: fixed("log_frequency"),
  trace_file: traceFile,
  trace_mode: fixed("trace_mode"),
};

const logText: Member<string> = { schema: { type: "string", description: "cannot be changed" }, read: asString };
const logFlag: Member<boolean> = { schema: { type: "boolean", description: "cannot be changed" }, read: asBoolean };

export const logMembers = {
  log_file: logText,
  log_info: logFlag,
  log_warning: logFlag,
  log_error: logFlag,
  log_verbose_level: {
    schema: {
      type: ["integer", "null"],
      description: "0: no debug lines; null: each process's `BATON_LOG_LEVEL`",
      minimum: 0,
    },
    read: orNull(asSize),
  },
  log_format: logText,
};

const traceAnswers = { 200: { says: "The settings of traces.", shape: tracesShape } };
const logAnswers = { 200: { says: "The settings of the log.", shape: logShape } };

export const observingEndpoints = [
  ...traceEndpoints("/v2/trace/setting", "all models"),
  ...traceEndpoints("/v2/models/:model/trace/setting", "a model"),
  ofLog({
    method: "GET",
    path: "/v2/logging",
    right: "operator",
    isTenantOptional: true,
    does: "Shows how much this gateway logs.",
    answers: logAnswers,
    handle: (_, { logging }) => jsonReply(logging.show()),
  }),
  ofLog({
    method: "POST",
    path: "/v2/logging",
    right: "operator",
    isTenantOptional: true,
    does: "Changes how much all processes of the fleet log. Null resets that.",
    members: logMembers,
    answers: logAnswers,
    refusals: ["outcome_unknown"],
    handle: async (asked, { logging }) => jsonReply(await logging.change(asked.caller, await asked.members())),
  }),
];

/** @param subject of the settings, in the endpoints' sentences */
function traceEndpoints(path: string, subject: string) {
  const ofModel = path.includes(":model");
  const refusals = ofModel ? (["unknown_model", "model_unavailable"] as const) : [];
  return [
    trace({
      method: "GET",
      path,
      right: "operator",
      isTenantOptional: true,
      does: `Shows which requests for ${subject} are traced.`,
      answers: traceAnswers,
      refusals,
      handle: (asked, parts) => jsonReply(parts.traces.show(knownModel(asked, parts, ofModel, true))),
    }),
    trace({
      method: "POST",
      path,
      right: "operator",
      isTenantOptional: true,
      does: `Changes which requests for ${subject} are traced, at all gateways. Null resets a member.`,
      members: traceMembers,
      answers: traceAnswers,
      refusals: [...refusals, "outcome_unknown"],
      async handle(asked, parts) {
        const { trace_level: level, trace_rate: rate } = await asked.members();
        const isReset = (level ?? null) === null && (rate ?? null) === null;
        const model = knownModel(asked, parts, ofModel, isReset);
        return jsonReply(await parts.traces.change(asked.caller, model, { level, rate }));
      },
    }),
  ];
}

/**
 * @param isKeptEnough whether a model will do that no worker serves, and that still has settings
 * @throws InferenceError if the path names an unknown model
 */
function knownModel(
  asked: Pick<Asked, "segment" | "models" | "caller">,
  { fleet, traces }: ObservingParts,
  ofModel: boolean,
  isKeptEnough: boolean,
): string | undefined {
  if (!ofModel) return undefined;
  const { model } = modelOf(asked);
  if (isKeptEnough && traces.isKept(asked.caller, model)) return model;
  return asked.models(fleet).find(model).name;
}
