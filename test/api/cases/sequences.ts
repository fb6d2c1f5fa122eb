/** Sequences as things to look at, to copy, to wind back and to end. */
import type { Recorder } from "../recording/recorder.js";

const PATH = "/v2/models/accumulate/sequences";
const step = (id: number | string, value: number, more: object = {}) => ({
  parameters: { sequence_id: id, ...more },
  inputs: [{ name: "INPUT", datatype: "INT32", shape: [1, 1], data: [value] }],
});

export async function sequences(api: Recorder): Promise<void> {
  const send = (id: number | string, value: number, more: object = {}) =>
    api.ask({ method: "POST", path: "/v2/models/accumulate/infer", body: step(id, value, more) });
  await api.get(PATH);
  for (const id of [11, 12, "word"]) await send(id, 1, { sequence_start: true });
  for (const value of [2, 3, 4]) await send(11, value);
  for (const query of ["?limit=0", "?limit=x", "?after=none", "?other=1", "?limit=1&limit=2"])
    await api.get(`${PATH}${query}`);
  for (const id of [
    "11",
    "12",
    "word",
    "word?type=string",
    "11?type=string",
    "11?type=number",
    "11?type=x",
    "99",
    "%2f",
    "0",
  ])
    await api.get(`${PATH}/${id}`);
  await api.get("/v2/models/accumulate/versions/1/sequences/11");
  await api.get("/v2/models/accumulate/versions/7/sequences/11");
  await api.get("/v2/models/absent/sequences");
  await api.get("/v2/models/simple/sequences/11");
  await api.as("stranger").get(`${PATH}/11`);

  for (const body of [
    { sequence_id: 21 },
    { sequence_id: 21 },
    { sequence_id: 22, step: 2 },
    { sequence_id: 23, step: 99 },
    { sequence_id: 24, step: 0 },
    { sequence_id: 25, step: "x" },
    { sequence_id: 0 },
    { sequence_id: "copy" },
    { sequence_id: 11 },
    { sequence_id: null },
    {},
    { other: 1 },
    "[",
    "",
  ]) {
    await api.post(`${PATH}/11/fork`, body);
  }
  await api.post(`${PATH}/99/fork`, { sequence_id: 31 });
  for (let i = 0; i < 2; i += 1) await api.post(`${PATH}/11/fork`, { sequence_id: 26 }, { "idempotency-key": "copy" });
  for (const body of [{ step: 3 }, { step: 3 }, { step: 9 }, { step: 0 }, { step: 1 }, {}, { step: "x" }, { other: 1 }])
    await api.post(`${PATH}/11/rewind`, body);
  await api.post(`${PATH}/99/rewind`, { step: 1 });

  const { body: frame } = await api.ask({ method: "GET", path: `${PATH}/12/state` });
  for (const query of ["?step=1", "?step=9", "?step=x", "?step=", "?other=1"])
    await api.get(`${PATH}/12/state${query}`);
  await api.get(`${PATH}/99/state`);
  const damaged = Buffer.from(frame);
  damaged[damaged.length - 1] = (damaged.at(-1) ?? 0) ^ 1;
  const put = (id: number | string, body: Buffer | string, headers = {}) =>
    api.send({ method: "PUT", path: `${PATH}/${id}/state`, body, headers });
  await put(41, frame);
  await put(41, frame);
  await put(42, damaged);
  await put(43, frame.subarray(0, 20));
  await put(44, "");
  await put("word2?type=string", frame);
  await api.send({ method: "PUT", path: "/v2/models/chain/sequences/45/state", body: frame });
  for (let i = 0; i < 2; i += 1) await put(46, frame, { "idempotency-key": "carried" });
  await api.post("/v2/models/accumulate/infer", step(41, 5));
  for (const id of ["11", "11", "99", "word"]) await api.delete(`${PATH}/${id}`);
  await api.post("/v2/models/accumulate/infer", step(11, 5));
}
