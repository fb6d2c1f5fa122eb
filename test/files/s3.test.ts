/** Files in S3: a local server that speaks its protocol, and OpenAI's own client. */
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import OpenAI, { NotFoundError, toFile } from "openai";
import { CreateBucketCommand, ListObjectsV2Command, S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startFleet, type Fleet } from "../support/fleet/fleet.js";

interface S3Server {
  run(): Promise<{ readonly port: number }>;
  close(): Promise<void>;
}
type S3ServerClass = new (options: {
  port: number;
  silent: boolean;
  directory: string;
  allowMismatchedSignatures: boolean;
}) => S3Server;
const S3rver = createRequire(import.meta.url)("@20minutes/s3rver") as S3ServerClass;

const BUCKET = "some-bucket";
const MIB = 1024 * 1024;
const credentials = { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" };
const folder = mkdtempSync(join(tmpdir(), "baton-s3-"));
/** It does not calculate signatures as newer clients of Amazon do. */
const server = new S3rver({ port: 0, silent: true, directory: folder, allowMismatchedSignatures: true });
let s3: S3Client;
let fleet: Fleet | undefined;
let openai: OpenAI;

beforeAll(async () => {
  const { port } = await server.run();
  const endpoint = `http://127.0.0.1:${port}`;
  s3 = new S3Client({ endpoint, region: "us-east-1", credentials, forcePathStyle: true });
  await s3.send(new CreateBucketCommand({ Bucket: BUCKET }));
  fleet = await startFleet({
    gateways: 1,
    workers: 0,
    models: [],
    direct: true,
    env: {
      BATON_FILES_URL: `s3://${BUCKET}/baton`,
      AWS_ENDPOINT_URL_S3: endpoint,
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    },
  });
  openai = new OpenAI({ baseURL: `${fleet.urls.at(0)}/v1`, apiKey: "none", maxRetries: 0 });
}, 120_000);
afterAll(async () => {
  await fleet?.dispose();
  s3.destroy();
  // The last test has closed the server.
  rmSync(folder, { recursive: true, force: true });
});

const keys = async () => {
  const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket: BUCKET }));
  return Contents.map(({ Key = "" }) => Key);
};

it.each([
  ["nothing", 0],
  ["a few bytes", 10],
  ["one part", 8 * MIB],
  ["several parts and a rest", 20 * MIB + 3],
])("keeps a file of %s", async (_, bytes) => {
  const text = Buffer.alloc(bytes, "0123456789abcdef\n");
  const { id } = await openai.files.create({ file: await toFile(text, "a.jsonl"), purpose: "batch" });
  expect(await keys()).toEqual([expect.stringMatching(new RegExp(`^baton/[0-9a-f]{12}/${id}$`))]);
  const content = await openai.files.content(id);
  expect(Buffer.from(await content.arrayBuffer()).equals(text)).toBe(true);
  await openai.files.delete(id);
  expect(await keys()).toEqual([]);
  await expect(openai.files.content(id)).rejects.toThrow(NotFoundError);
});

it("says that files cannot be read while S3 is gone, and lists them", async () => {
  const { id } = await openai.files.create({ file: await toFile(Buffer.from("x"), "a"), purpose: "batch" });
  await server.close();
  await expect(openai.files.content(id)).rejects.toMatchObject({ status: 503, code: "unavailable" });
  expect((await openai.files.list()).data.map((file) => file.id)).toEqual([id]);
}, 60_000);
