import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Reader } from "./reader.js";

let server: Server;
let url: string;
beforeAll(async () => {
  server = createServer((asked, answer) => {
    if (asked.url?.includes("refused") === true) return answer.writeHead(503).end("{}");
    answer.writeHead(200, { "content-type": "text/event-stream" });
    return answer.end('id: 0\ndata: {"index":0}\n\n');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await new Promise((resolve) => server.close(resolve));
});

it("says so at once when what it waits for cannot come any more", async () => {
  await expect(new Reader(url, "refused").reach(1)).rejects.toThrow(/after 0 of 1 records: .*503/);
  const short = new Reader(url, "short");
  await short.reach(1);
  await expect(short.reach(2)).rejects.toThrow(/after 1 of 2 records: .*ended/);
});
