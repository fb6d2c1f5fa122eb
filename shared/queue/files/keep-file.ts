/** The typed wrapper of keep-file.lua: finishes a file, which is whole and visible from now on. */
import type { RedisClient } from "../../redis/connect.js";
import { defineScript, integer, list, text, word } from "../../redis/script.js";
import { KEPT_MS } from "../kept-answers.js";
import { fileKeys } from "../keys.js";
import type { FileAddress } from "./reserve-file.js";

export const filePurposes = ["batch", "batch_output"] as const;
export type FilePurpose = (typeof filePurposes)[number];

export interface KeptFile {
  /** Redis ms. */
  readonly createdAt: number;
  /** Redis ms; undefined for a file that lives until a client deletes it. */
  readonly expiresAt: number | undefined;
}

/** The file of the first upload under an Idempotency-Key. */
export interface UploadClaim {
  readonly id: string;
  /** A digest of all that the client has sent. */
  readonly asked: string;
}

/** The claim of this upload, and where Redis keeps the claim of the first upload. */
export interface UploadKey {
  /** From `fileKeys.upload`. */
  readonly place: string;
  readonly asked: string;
}

type Kept =
  | ({ readonly said: "kept" } & KeptFile)
  | { readonly said: "gone" }
  | { readonly said: "known"; readonly claim: UploadClaim };

const script = defineScript(
  new URL("./keep-file.lua", import.meta.url),
  (reply): Kept => {
    const [answer, first, expires] = list(reply);
    const said = word(answer, ["kept", "gone", "known"]);
    if (said === "gone") return { said };
    if (said === "known") return { said, claim: readClaim(text(first)) };
    return { said, createdAt: integer(first), expiresAt: text(expires) === "" ? undefined : integer(expires) };
  },
  {
    keys: ["file", "all", "due", { upload: [] }],
    args: ["tenant", "id", "name", "purpose", "ttl", "claim", "claimMs"],
    durable: true,
  },
);

export function readClaim(claim: string): UploadClaim {
  return JSON.parse(claim) as UploadClaim;
}

/**
 * @param ttlMs undefined to keep the file until a client deletes it
 * @param upload undefined without an Idempotency-Key
 * @returns `gone` if the file is not in the state `writing` any more
 */
export function keepFile(
  redis: RedisClient,
  { tenant, id }: FileAddress,
  {
    name,
    purpose,
    ttlMs,
  }: { readonly name: string; readonly purpose: FilePurpose; readonly ttlMs: number | undefined },
  upload?: UploadKey,
): Promise<Kept> {
  const files = { file: fileKeys.file(tenant, id), all: fileKeys.all(tenant), due: fileKeys.due };
  const keys = { ...files, upload: upload === undefined ? [] : [upload.place] };
  const claim = upload === undefined ? "" : JSON.stringify({ asked: upload.asked, id } satisfies UploadClaim);
  return script(redis, keys, { tenant, id, name, purpose, ttl: ttlMs ?? "", claim, claimMs: KEPT_MS });
}
