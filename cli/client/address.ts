/** The gateway's address and the client's key, from options or the environment. */
import { exitCodes, Failure } from "../terminal/exit.js";

export interface Address {
  /** Without a trailing slash. */
  readonly url: string;
  /** The headers that authenticate the client. */
  readonly headers: Readonly<Record<string, string>>;
}

const DEFAULT_URL = "http://127.0.0.1:8000";

/** @throws Failure for an invalid address or key; the message never quotes a key */
export function readAddress(
  given: { readonly url?: string | undefined; readonly key?: string | undefined },
  env: NodeJS.ProcessEnv,
): Address {
  const url = given.url ?? (env["BATON_URL"] || DEFAULT_URL);
  const named = given.url === undefined ? "BATON_URL" : "--url";
  const key = given.key ?? env["BATON_API_KEY"] ?? "";
  if (!/^[\x21-\x7e]*$/.test(key)) {
    const source = given.key === undefined ? "BATON_API_KEY" : "--key";
    throw new Failure(exitCodes.usage, `${source} must be printable ASCII without spaces`);
  }
  return { url: readUrl(url, named), headers: key === "" ? {} : { authorization: `Bearer ${key}` } };
}

function readUrl(text: string, named: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    // The text before an @ may be a password, and error messages get into logs.
    const shown = text.replace(/^.*@/s, "…@");
    throw new Failure(exitCodes.usage, `${named} must be an address such as ${DEFAULT_URL}, not '${shown}'`);
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    const parts = "without user, password, query and fragment";
    throw new Failure(exitCodes.usage, `${named} must be an address ${parts}; a key goes into BATON_API_KEY`);
  }
  return url.href.replace(/\/+$/, "");
}

/**
 * Encodes a name as a segment of a path.
 * @throws Failure for a name that no path can hold: HTTP clients resolve `.` and `..`
 */
export function segment(name: string): string {
  if (name === "" || name === "." || name === "..") {
    throw new Failure(exitCodes.usage, `'${name}' cannot be a name in a path`);
  }
  try {
    return encodeURIComponent(name);
  } catch (cause) {
    throw new Failure(exitCodes.usage, "a name must be text in UTF-8", { cause });
  }
}
