/** Adds declared endpoints to the router: each path with its methods, in the declared order. */
import type { Router } from "../../http/router.js";
import { Asked, type AskedTerms } from "./asked.js";
import type { Endpoint } from "./endpoint.js";

/** @param endpoints if several of their paths match a request, the first answers */
export function addEndpoints<S>(
  router: Router,
  endpoints: readonly Endpoint<S>[],
  service: S,
  terms: Omit<AskedTerms, "onBug">,
): void {
  const all = { ...terms, onBug: router.onBug };
  for (const [path, group] of byPath(endpoints)) {
    const handlers = group.map((endpoint) => {
      const { method } = endpoint;
      const headers = Object.entries(endpoint.headers ?? {});
      const answer = (c: Parameters<typeof router.onBug>[1]) => {
        for (const [name, value] of headers) c.env.outgoing.appendHeader(name, value);
        return endpoint.handle(new Asked(endpoint, c, all), service);
      };
      return [method, answer];
    });
    router.add(path, Object.fromEntries(handlers) as Parameters<Router["add"]>[1]);
  }
}

function byPath<S>(endpoints: readonly Endpoint<S>[]): ReadonlyMap<string, Endpoint<S>[]> {
  const groups = new Map<string, Endpoint<S>[]>();
  for (const endpoint of endpoints) {
    const group = groups.get(endpoint.path);
    if (group === undefined) groups.set(endpoint.path, [endpoint]);
    else group.push(endpoint);
  }
  return groups;
}
