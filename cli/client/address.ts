/** Where the gateway is, and with which key it is asked: an option says so, or the environment. */
import { exitCodes, Failure } from "../terminal/exit.js";

export interface Address {
  /** Without a slash at its end. */
  readonly url: string;
  /** The headers that prove who asks. */
  readonly headers: Readonly<Record<string, string>>;
}

const DEFAULT_URL = "http://127.0.0.1:8000";

/** @throws Failure for what is no address or no key; a key is never quoted */
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
    // What stands before an @ may be a password, and complaints get into logs.
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
 * Writes a name into a path.
 * @throws Failure for a name that a path cannot hold: every client of HTTP resolves dots away
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
