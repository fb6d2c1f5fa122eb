/** The settings of traces, the same for all processes of a deployment. */
import { z } from "zod";

/** Below an address that names no path. The path is OpenTelemetry's. */
const TRACES_PATH = "/v1/traces";

const NO_ADDRESS = "must be an address with http:// or https://";

function isAddress(text: string): boolean {
  return /^https?:\/\//.test(text) && URL.canParse(text);
}

export const traceSettings = {
  BATON_TRACE_URL: z
    .string()
    .refine(isAddress, NO_ADDRESS)
    .optional()
    .describe(
      "The address that takes traces, as JSON over OTLP/HTTP, such as `http://jaeger:4318/v1/traces`. Unset: the next " +
        "two settings count, and without all three there are no traces.",
    ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: z
    .string()
    .refine(isAddress, NO_ADDRESS)
    .optional()
    .describe("OpenTelemetry's name for the same."),
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .string()
    .refine(isAddress, NO_ADDRESS)
    .optional()
    .describe(`OpenTelemetry's name for the same address without \`${TRACES_PATH}\`, which the process adds.`),
  BATON_TRACE_HEADERS_FILE: z
    .string()
    .optional()
    .describe("The path of the file whose first line is `BATON_TRACE_HEADERS`, in place of that setting."),
  BATON_TRACE_HEADERS: z
    .string()
    .optional()
    .refine((text) => text === undefined || parseHeaders(text) !== undefined, "must be name=value, comma-separated")
    .describe("Headers for the receiver of traces, such as a key: `name=value`, comma-separated."),
  BATON_TRACE_SAMPLE: z.coerce
    .number()
    .min(0)
    .max(1)
    .default(0.01)
    .describe("The share of requests to trace, from 0 to 1. A request with a valid `traceparent` says so itself."),
};

type TraceConfig = z.infer<z.ZodObject<typeof traceSettings>>;

/** @returns undefined if the process makes no traces */
export function traceUrlOf(config: TraceConfig): string | undefined {
  const base = config.OTEL_EXPORTER_OTLP_ENDPOINT;
  const below = base === undefined ? undefined : base.replace(/\/*$/, TRACES_PATH);
  return config.BATON_TRACE_URL ?? config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? below;
}

/** @returns undefined if the text is no list of headers */
export function parseHeaders(text: string): Readonly<Record<string, string>> | undefined {
  const headers: Record<string, string> = {};
  for (const part of text.split(",")) {
    const [, name, value] =
      /^\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)\s*$/.exec(part) ?? [];
    if (name === undefined || value === undefined) return undefined;
    headers[name] = value;
  }
  return headers;
}
