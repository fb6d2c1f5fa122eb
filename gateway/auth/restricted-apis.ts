/**
 * APIs that ask for a header of their own, beside the credential of a request, as Triton's do with
 * `--http-restricted-api` and `--grpc-restricted-protocol`. Every path and every method of gRPC
 * declares the API that it is a part of.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { InferenceError } from "#shared/errors.js";

/** The APIs, by Triton's names. */
export const tritonApis = [
  "health",
  "metadata",
  "inference",
  "shared-memory",
  "model-config",
  "model-repository",
  "statistics",
  "trace",
  "logging",
] as const;

type TritonApi = (typeof tritonApis)[number];

/** `none` for a path that does nothing of Triton's, which stays open. */
export type Api = TritonApi | "none";

/** How the protocols name a restricted part, and the header that it asks for. */
const protocols = {
  http: { part: "API", prefix: "" },
  grpc: { part: "protocol", prefix: "triton-grpc-protocol-" },
} as const;

type Headers = Readonly<Partial<Record<string, string | string[]>>>;

interface Restriction {
  readonly header: string;
  readonly digest: Buffer;
}

export class RestrictedApis {
  readonly #restrictions: ReadonlyMap<Api, Restriction>;

  constructor(restrictions: ReadonlyMap<Api, Restriction>) {
    this.#restrictions = restrictions;
  }

  /** @throws InferenceError `restricted_api` if the headers do not open the API */
  check(api: Api, headers: Headers, protocol: keyof typeof protocols = "http"): void {
    const refusal = this.refusal(api, headers, protocol);
    if (refusal !== undefined) throw refusal;
  }

  /** @returns undefined if the headers open the API, or if it is not restricted */
  refusal(api: Api, headers: Headers, protocol: keyof typeof protocols = "http"): InferenceError | undefined {
    const restriction = this.#restrictions.get(api);
    if (restriction === undefined) return undefined;
    const { part, prefix } = protocols[protocol];
    const header = `${prefix}${restriction.header}`;
    const given = headers[header.toLowerCase()];
    if (typeof given === "string" && timingSafeEqual(digestOf(given), restriction.digest)) return undefined;
    return new InferenceError("restricted_api", `This ${part} is restricted, expecting header '${header}'`);
  }
}

/** The characters that both a header of HTTP and a key of gRPC's metadata may have. */
const headerName = /^[A-Za-z0-9_.-]{1,128}$/;
/** Metadata of gRPC with such a name holds bytes. */
const binaryName = /-bin$/i;
/** Printable ASCII without a blank at either end, which no header keeps. */
const headerValue = /^[!-~](?:[ -~]*[!-~])?$/;
/** Other texts may be a piece of a secret with a `;`, and no message shows them. */
const shownName = /^[a-z_-]{1,32}$/i;

/**
 * Reads `<apis>:<header>=<value>`, with commas between APIs and `;` between such groups.
 * @returns what is wrong as the end of a sentence, without any secret, if the text is not valid
 */
export function parseRestrictedApis(text: string): RestrictedApis | string {
  const restrictions = new Map<Api, Restriction>();
  for (const [i, group] of text.split(";").entries()) {
    const at = `group ${i + 1}`;
    const [, names = "", header = "", value = ""] = /^([^:]*):([^=]*)=(.*)$/s.exec(group.trim()) ?? [];
    if (names === "") return `must be groups of <apis>:<header>=<value>, separated by ';', and ${at} is none`;
    if (!headerName.test(header) || binaryName.test(header)) {
      return `${at} needs the name of a header, of the characters A-Z, a-z, 0-9, _, . and -, and not with -bin at its end`;
    }
    if (!headerValue.test(value)) return `${at} needs a value of printable ASCII characters`;
    const restriction = { header, digest: digestOf(value) };
    for (const name of names.split(",").map((one) => one.trim())) {
      if (!isTritonApi(name)) {
        const shown = shownName.test(name) ? ` '${name}'` : "";
        return `${at} names an API${shown} that does not exist: there are ${tritonApis.join(", ")}`;
      }
      if (restrictions.has(name)) return `names the API '${name}' twice`;
      restrictions.set(name, restriction);
    }
  }
  return new RestrictedApis(restrictions);
}

function isTritonApi(text: string): text is TritonApi {
  return (tritonApis as readonly string[]).includes(text);
}

/** All digests have one length, so every comparison takes the same time. */
function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
