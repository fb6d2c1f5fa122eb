/** The same request for a terminal, so that a user can leave the page and go on there. */

/**
 * @param origin of the gateway
 * @returns a command for a shell of Unix; a key stands in a variable, never in the text
 */
export function curlText(origin: string, path: string, body: string, hasKey: boolean): string {
  const key = hasKey ? ` -H "Authorization: Bearer $BATON_API_KEY"` : "";
  return `curl ${quoted(origin + path)}${key} -H 'Content-Type: application/json' -d ${quoted(body)}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
