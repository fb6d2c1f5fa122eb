/**
 * Finds the credential of a request. Only the form is judged here. A message never repeats a
 * credential.
 */
import { errorKinds } from "#shared/errors.js";
import { AuthFailure } from "./owner/auth-failure.js";
import { KEY_PREFIX } from "./key.js";

/** The texts of the headers that may have a credential; each header may come several times. */
export interface CredentialTexts {
  readonly authorization: readonly string[];
  /** Of the headers `api-key` and `x-api-key`. */
  readonly apiKey: readonly string[];
  /** The target of the request, in which some clients put keys. */
  readonly target: string;
  /** What stands in the places of tickets; absent if no ticket opens the path. */
  readonly tickets?: TicketTexts | undefined;
}

export interface TicketTexts {
  readonly texts: readonly string[];
  /** The public id in the path: a ticket opens a single request. */
  readonly request: string;
}

export type Credential =
  | { readonly kind: "key" | "token"; readonly text: string }
  | { readonly kind: "ticket"; readonly text: string; readonly request: string };

const bearer = /^bearer +(\S+) *$/i;
const jwt = /^[\w-]+\.[\w-]+\.[\w-]*$/;
/** Names under which clients put keys into URLs. */
const urlKey = /[?&](?:api_key|key|access_token)=|[?&]ticket=bt_/;

/**
 * @throws AuthFailure `missing_api_key` if there is no credential, `invalid_argument` if there
 * are several or one of another scheme, `invalid_api_key` if the credential has no known form
 */
export function readCredential({ authorization, apiKey, target, tickets }: CredentialTexts): Credential {
  if (authorization.length > 1) throw several();
  const [header] = authorization;
  let text = header === undefined ? undefined : bearerOf(header.trim());
  for (const one of apiKey) {
    if (text !== undefined && text !== one) throw several();
    text = one;
  }
  const ticket = tickets?.texts.find((one) => !one.startsWith(KEY_PREFIX));
  if (tickets !== undefined && ticket !== undefined) {
    if (text !== undefined || tickets.texts.some((one) => one !== ticket)) throw several();
    return { kind: "ticket", text: ticket, request: tickets.request };
  }
  if (text === undefined) {
    const { inUrl, usual } = errorKinds.missing_api_key.texts;
    throw new AuthFailure("missing", "missing_api_key", urlKey.test(target) ? inUrl : usual);
  }
  if (text.startsWith(KEY_PREFIX)) return { kind: "key", text };
  if (jwt.test(text)) return { kind: "token", text };
  throw new AuthFailure("malformed", "invalid_api_key", errorKinds.invalid_api_key.texts.usual);
}

function bearerOf(header: string): string {
  const text = bearer.exec(header)?.[1];
  if (text !== undefined) return text;
  const [scheme = ""] = header.split(" ", 1);
  if (scheme.toLowerCase() === "bearer") return "";
  // Any other text may be a key without its scheme.
  const name = /^(?:basic|digest|negotiate)$/i.test(scheme) ? scheme : "this scheme of authorization";
  const message = `${name} is not supported: send 'Authorization: Bearer <key>'`;
  throw new AuthFailure("kind", "invalid_argument", message);
}

function several(): AuthFailure {
  return new AuthFailure("malformed", "invalid_argument", errorKinds.invalid_argument.texts.severalCredentials);
}
