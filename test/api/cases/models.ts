/** The metadata of a server and its models, and Triton's paths that Baton refuses. */
import type { Recorder } from "../recording/recorder.js";

const MODELS = ["simple", "accumulate", "chain", "echo-bytes", "tale-gpt", "absent"];

export async function models(api: Recorder): Promise<void> {
  for (const path of ["/v2", "/v2/", "/v2/health/live", "/v2/health/ready", "/v2/nothing", "/", "/v2/models"])
    await api.get(path);
  for (const path of ["/v2/health/live", "/v2", "/v2/models/simple", "/v1/models", "/v2/jobs"])
    await api.send({ method: "HEAD", path });
  for (const model of MODELS) {
    for (const version of ["", "/versions/1", "/versions/9"]) {
      for (const rest of ["", "/ready", "/config", "/stats"]) await api.get(`/v2/models/${model}${version}${rest}`);
    }
  }
  for (const path of [
    "/v2/models/stats",
    "/v2/models/simple%2f",
    "/v2/models/s%69mple",
    "/v2/models/%zz",
    "/v2/models//ready",
  ])
    await api.get(path);

  for (const body of ["", "{}", { ready: true }, { ready: false }, { ready: "yes" }, "[", { other: 1 }])
    await api.post("/v2/repository/index", body);
  await api.post("/v2/repository/any/index");
  for (const path of ["/v2/repository", "/v2/repository/any"]) {
    for (const action of ["load", "unload"]) await api.post(`${path}/models/simple/${action}`, {});
  }
  for (const path of ["/v2/logging", "/v2/trace/setting", "/v2/models/simple/trace/setting"]) {
    await api.get(path);
    for (const body of ["", "[", {}, { trace_level: ["OFF"] }, { trace_file: "a" }, { log_verbose_level: 0 }])
      await api.post(path, body);
  }
  for (const memory of ["/v2/systemsharedmemory", "/v2/cudasharedmemory"]) {
    await api.get(`${memory}/status`);
    await api.get(`${memory}/region/one/status`);
    await api.post(`${memory}/region/one/register`, {});
    await api.post(`${memory}/region/one/unregister`);
    await api.post(`${memory}/unregister`);
  }
}
