/** The settings of listeners that gateways, workers and jobs processes have in common. */
import { z } from "zod";
import { areHosts } from "./browsers.js";

const openGroups = ["health", "metadata", "metrics"] as const;

/** The groups of paths that a deployment may leave open to requests without a key. */
export type OpenGroup = (typeof openGroups)[number];

export const listenerSettings = {
  BATON_TLS_CERT_FILE: z
    .string()
    .optional()
    .describe(
      "The path of the file with the process's certificate, and those between it and an authority. Its listeners then " +
        "speak TLS 1.2 or newer alone. Like the next two, it is read anew when it changes. Unset: no TLS.",
    ),
  BATON_TLS_KEY_FILE: z.string().optional().describe("The path of the file with the key of `BATON_TLS_CERT_FILE`."),
  BATON_TLS_CLIENT_CA_FILE: z
    .string()
    .optional()
    .describe(
      "The path of the file with the authorities that sign the certificates of clients. A client without such a " +
        "certificate gets no connection. Unset: clients need none.",
    ),
  BATON_ALLOWED_HOSTS: z
    .string()
    .refine(areHosts, "must be names without ports, comma-separated")
    .default("")
    .describe(
      "The names, comma-separated, by which clients may address this process. `.example.com` allows all names " +
        "below it, and `*` any name. A request under another name gets 403. Addresses, names without a dot, and " +
        "names that end in `.localhost`, `.local`, `.internal`, `.svc`, `.home.arpa` or `.lan` are always allowed.",
    ),
  BATON_PUBLISH: z
    .string()
    .optional()
    .describe(
      "The address on which the ports of the process's container are published. The process judges this address in " +
        "place of `BATON_HOST` and `BATON_METRICS_HOST`. Docker Compose sets it for the gateway.",
    ),
  BATON_INSECURE: z
    .enum(["1"])
    .optional()
    .describe(
      "`1`: a gateway starts with `BATON_AUTH=off` although other machines reach it, and metrics need no token. " +
        "Unset: neither.",
    ),
  BATON_AUTH_OPEN: z
    .string()
    .default("health")
    .refine(
      (text) => parseOpen(text) !== undefined,
      `must be \`none\`, or of ${openGroups.join(", ")}, comma-separated`,
    )
    .describe(
      "The paths that need no API key, comma-separated: `health` (health checks), `metadata` (the server's and the " +
        "models' descriptions), `metrics` (the metrics of this process); or `none`.",
    ),
};

/** @returns undefined if the text names a group that does not exist */
export function parseOpen(text: string): OpenGroup[] | undefined {
  if (text === "none") return [];
  const groups = text.split(",").map((group) => group.trim());
  return groups.every((group) => (openGroups as readonly string[]).includes(group))
    ? (groups as OpenGroup[])
    : undefined;
}

/** Whether only programs of this machine reach a listener on the address. */
export function isLoopback(address: string): boolean {
  // Docker Compose needs an address of IPv6 in brackets.
  const host = address.replace(/^\[(.*)\]$/, "$1");
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}
