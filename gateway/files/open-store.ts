/**
 * Opens the store that the settings name. S3's client is large, so the process loads it only if the
 * settings name S3.
 */
import { createHash } from "node:crypto";
import type { Link } from "#shared/nats/client.js";
import { NatsObjectStore } from "#shared/nats/object-store.js";
import type { ObjectStore } from "#shared/object-store.js";
import { parseFilesUrl } from "./settings.js";

export interface StoreTerms {
  /** `BATON_FILES_URL`. */
  readonly url: string;
  readonly nats: Omit<Link, "name">;
  readonly replicas: number;
  /** Of this process. */
  readonly name: string;
  /**
   * The deployment's. Because of it, two deployments that share a NATS or an S3 bucket keep their
   * files apart.
   */
  readonly secret: Buffer;
}

/** The store connects at its first use. */
export function openStore({ url, nats, replicas, name, secret }: StoreTerms): ObjectStore {
  const place = parseFilesUrl(url) ?? "nats";
  const deployment = createHash("sha256").update("files").update(secret).digest("hex").slice(0, 12);
  if (place === "nats") {
    return new NatsObjectStore({
      ...nats,
      name: `${name}-files`,
      bucket: `baton-files-${deployment}`,
      replicas,
    });
  }
  const { bucket, prefix } = place;
  return lazily(async () => {
    const { S3ObjectStore } = await import("./s3-store.js");
    return new S3ObjectStore(bucket, [prefix, deployment].filter((part) => part !== "").join("/"));
  });
}

function lazily(open: () => Promise<ObjectStore>): ObjectStore {
  let opened: Promise<ObjectStore> | undefined;
  const store = () => (opened ??= open());
  return {
    put: async (name, source) => (await store()).put(name, source),
    async *read(name, from) {
      yield* (await store()).read(name, from);
    },
    remove: async (name) => (await store()).remove(name),
    close: async () => (await opened)?.close(),
  };
}
