/** The protocol of a path: `kserve`, `openai`, `jobs`, `grpc`, or `own` for Baton's other paths. */
const SECTIONS: Readonly<Record<string, string>> = {
  jobs: "jobs",
  schedules: "jobs",
  webhooks: "jobs",
  deliveries: "jobs",
  dead: "jobs",
  health: "kserve",
  models: "kserve",
  repository: "kserve",
  logging: "kserve",
  trace: "kserve",
  systemsharedmemory: "kserve",
  cudasharedmemory: "kserve",
};

/** @returns undefined for a path that is none of Baton's */
export function protocolOf(path: string): string | undefined {
  if (path.startsWith("/v1/")) return "openai";
  if (/^\/(?:inference|grpc)\./.test(path)) return "grpc";
  if (path === "/v2" || path === "/v2/") return "kserve";
  const [, section, action] = /^\/v2\/([^/]+)(?:\/[^/]+(?:\/versions\/[^/]+)?\/([^/]+))?/.exec(path) ?? [];
  if (section === undefined) return path.startsWith("/console") ? "own" : undefined;
  if (section === "models" && (action === "jobs" || action === "schedules")) return "jobs";
  return Object.hasOwn(SECTIONS, section) ? SECTIONS[section] : "own";
}
