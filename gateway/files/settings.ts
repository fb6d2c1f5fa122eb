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
      "where files are kept: `nats:` is JetStream's object store at BATON_NATS_URL; of S3, `s3://bucket/prefix`, " +
        "the region, credentials and any other endpoint are those of AWS_REGION, AWS_ACCESS_KEY_ID, " +
        "AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL_S3, as usual",
    ),
  BATON_FILE_REPLICAS: z.coerce
    .number()
    .int()
    .min(1)
    .max(5)
    .default(1)
    .describe("how many servers of a NATS cluster keep each file"),
  BATON_FILE_BYTES: count(GIB).describe("longest file"),
  BATON_TENANT_FILE_BYTES: count(10 * GIB).describe("bytes of a tenant's files before 429"),
  BATON_TOTAL_FILE_BYTES: count(40 * GIB).describe("bytes of all files before 507"),
  BATON_TENANT_FILES: count(10_000).describe("files of a tenant before 429"),
  BATON_TOTAL_FILES: count(100_000).describe("files of all tenants before 507"),
  BATON_FILE_TTL_MS: count(30 * DAY_MS).describe("how long a file lives for which its client says nothing else"),
};

/** @returns undefined if the URL names no store */
export function parseFilesUrl(url: string): "nats" | { readonly bucket: string; readonly prefix: string } | undefined {
  if (url === "nats:") return "nats";
  const [, bucket, prefix = ""] =
    /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([A-Za-z0-9._/-]*))?$/.exec(url) ?? [];
  return bucket === undefined ? undefined : { bucket, prefix: prefix.replace(/\/+$/, "") };
}
