/** What the path of a request to a model says. */
import type { Context } from "hono";
import { InferenceError } from "#shared/errors.js";
import type { GatewayEnv } from "../../http/router.js";

/** The beginnings of all paths to a model: of its latest version, and of one. */
export const modelPaths = ["/v2/models/:model", "/v2/models/:model/versions/:version{[0-9]+}"] as const;

/**
 * Reads the model's name from the path, which Hono has decoded once. An escape, a slash or a
 * control character that is left names no model.
 * @throws InferenceError
 */
export function modelName(c: Context<GatewayEnv>): string {
  const name = c.req.param("model") ?? "";
  if (/^[A-Za-z0-9._-]{1,128}$/.test(name) && !name.includes("..")) return name;
  throw new InferenceError("unknown_model", `Request for unknown model: '${name}' is not found`);
}

export function modelVersion(c: Context<GatewayEnv>): string | undefined {
  return c.req.param("version");
}
