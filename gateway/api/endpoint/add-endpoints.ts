/** Adds declared endpoints to the router: each path with its methods, in the declared order. */
import type { Owner } from "../../auth/owner/owner.js";
import { admitCall, admitTo, askingOf, hasCredential } from "../../http/guard.js";
import { noteOwner } from "../../http/opened.js";
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
  const { guard } = terms;
  const all = { ...terms, onBug: router.onBug };
  for (const [path, group] of byPath(endpoints)) {
    const handlers = group.map((endpoint) => {
      const { method } = endpoint;
      const headers = Object.entries(endpoint.headers ?? {});
      const { right, otherRight = "read", open, opensByTicketFor: ticketed } = endpoint;
      const judge = (endpoint.admits ?? right === "infer") ? admitTo : admitCall;
      const isOpen = !guard.asks || open === "always" || (open !== undefined && guard.open.has(open));
      const answer = (c: Parameters<typeof router.onBug>[1]) => {
        for (const [name, value] of headers) c.env.outgoing.appendHeader(name, value);
        const handle = (owner?: Owner) => {
          guard.restricted?.check(endpoint.api, c.env.incoming.headers);
          if (owner !== undefined) noteOwner(c.env.outgoing, guard, owner);
          return endpoint.handle(new Asked(endpoint, c, all, owner), service);
        };
        if (isOpen) {
          // Which models there are depends on who asks.
          const isNamed = open === "metadata" && guard.asks && hasCredential(c.env.incoming.headers);
          if (!isNamed) return handle();
          const named = judge(guard, askingOf(c.env.incoming), "any");
          return named instanceof Promise ? named.then(handle) : handle(named);
        }
        const reads = ticketed === undefined ? undefined : c.req.param(ticketed);
        const owner = judge(guard, askingOf(c.env.incoming, reads), right ?? otherRight);
        return owner instanceof Promise ? owner.then(handle) : handle(owner);
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
