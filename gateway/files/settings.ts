/** The settings of files, which must be equal in gateways and jobs processes. */
import { z } from "zod";

const count = (usual: number) => z.coerce.number().int().positive().default(usual);
const GIB = 1024 ** 3;
const DAY_MS = 86_400_000;

export const fileSettings = {
  BATON_FILES_URL: z
    .string()
    .default("nats:")
    .refine((url) => parseFilesUrl(url) !== undefined, "must be `nats:` or `s3://bucket/prefix`")
    .describe(
      "The store of files: `nats:` is the object store of JetStream at BATON_NATS_URL, and `s3://bucket/prefix` is " +
        "S3. For S3, the usual variables AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and " +
        "AWS_ENDPOINT_URL_S3 give the region, the credentials and another endpoint.",
    ),
  BATON_FILE_REPLICAS: z.coerce
    .number()
    .int()
    .min(1)
    .max(5)
    .default(1)
    .describe("The number of servers of a NATS cluster that keep each file, from 1 to 5."),
  BATON_FILE_BYTES: count(GIB).describe("The most bytes of a file. A larger upload gets 413."),
  BATON_TENANT_FILE_BYTES: count(10 * GIB).describe(
    "The most bytes of all files of a tenant. Further uploads of the tenant get 429.",
  ),
  BATON_TOTAL_FILE_BYTES: count(40 * GIB).describe(
    "The most bytes of all files of all tenants. Further uploads get 507.",
  ),
  BATON_TENANT_FILES: count(10_000).describe("The most files of a tenant. Further uploads of the tenant get 429."),
  BATON_TOTAL_FILES: count(100_000).describe("The most files of all tenants. Further uploads get 507."),
  BATON_FILE_TTL_MS: count(30 * DAY_MS).describe(
    "How long, in ms, Baton keeps a file if the upload names no other time. After that Baton deletes the file.",
  ),
};

/** @returns undefined if the URL names no store */
export function parseFilesUrl(url: string): "nats" | { readonly bucket: string; readonly prefix: string } | undefined {
  if (url === "nats:") return "nats";
  const [, bucket, prefix = ""] =
    /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([A-Za-z0-9._/-]*))?$/.exec(url) ?? [];
  return bucket === undefined ? undefined : { bucket, prefix: prefix.replace(/\/+$/, "") };
}
