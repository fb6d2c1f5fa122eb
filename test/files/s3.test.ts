/** Files in S3: a local server that checks signatures as Amazon does, and OpenAI's own client. */
import OpenAI, { NotFoundError, toFile } from "openai";
import { CreateBucketCommand, ListObjectsV2Command, S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startFleet, type Fleet } from "../support/fleet/fleet.js";
import { startS3, type S3Server } from "./s3-server.js";

const BUCKET = "some-bucket";
const MIB = 1024 * 1024;
let server: S3Server;
let s3: S3Client;
let fleet: Fleet | undefined;
let openai: OpenAI;

const clientWith = (credentials: S3Server["credentials"]) =>
  new S3Client({ endpoint: server.url, region: "us-east-1", credentials, forcePathStyle: true });

beforeAll(async () => {
  server = await startS3();
  const { url, credentials } = server;
  s3 = clientWith(credentials);
  await s3.send(new CreateBucketCommand({ Bucket: BUCKET }));
  fleet = await startFleet({
    workers: 0,
    models: [],
    direct: true,
    env: {
      BATON_FILES_URL: `s3://${BUCKET}/baton`,
      AWS_ENDPOINT_URL_S3: url,
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    },
  });
  openai = new OpenAI({ baseURL: `${fleet.urls.at(0)}/v1`, apiKey: "none", maxRetries: 0 });
});
afterAll(async () => {
  await fleet?.dispose();
  s3.destroy();
  // The last test has closed the server.
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

it("is asked with signatures that S3 accepts, and with no others", async () => {
  const stranger = clientWith({ ...server.credentials, secretAccessKey: "another" });
  const asked = stranger.send(new ListObjectsV2Command({ Bucket: BUCKET }));
  await expect(asked).rejects.toMatchObject({ name: "SignatureDoesNotMatch" });
  stranger.destroy();
});

it("says that files cannot be read while S3 is gone, and lists them", async () => {
  const { id } = await openai.files.create({ file: await toFile(Buffer.from("x"), "a"), purpose: "batch" });
  await server.close();
  await expect(openai.files.content(id)).rejects.toMatchObject({ status: 503, code: "unavailable" });
  expect((await openai.files.list()).data.map((file) => file.id)).toEqual([id]);
});
