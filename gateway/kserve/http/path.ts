/** Reads the path of a request to a model. */
import type { Context } from "hono";
import { InferenceError } from "#shared/errors.js";
import type { GatewayEnv } from "../../http/router.js";

/** The beginnings of all paths to a model: to its latest version, and to a named version. */
export const modelPaths = ["/v2/models/:model", "/v2/models/:model/versions/:version{[0-9]+}"] as const;

/**
 * Reads the model's name from the path, which Hono has decoded once. A remaining escape, slash or
 * control character names no model.
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
