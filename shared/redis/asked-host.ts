/**
 * Adds the hosts that the nodes of a Cluster omit from answers. A node names only ports if it has
 * met no other node, or if its `cluster-preferred-endpoint-type` is `unknown-endpoint`. Clients
 * find those ports at the host that they have asked. ioredis 6.0 drops a node without a host from
 * CLUSTER SLOTS, and follows a redirection without a host to 127.0.0.1.
 */
import type { Cluster, Redis } from "ioredis";

/** Makes the client, and each copy of the client, use the hosts that they have asked. */
export function useAskedHosts(cluster: Cluster): Cluster {
  cluster.on("+node", fillHosts);
  // BullMQ copies the client for its blocking reads.
  const duplicate = cluster.duplicate.bind(cluster);
  cluster.duplicate = (...how) => useAskedHosts(duplicate(...how));
  return cluster;
}

/** Inserts this node's host into the node's answers, before the Cluster client reads them. */
function fillHosts(node: Redis): void {
  const { host = "", reconnectOnError } = node.options;
  // The client calls this with each refusal of the node, and then follows the address in the text.
  node.options.reconnectOnError = (refusal) => {
    refusal.message = withHost(refusal.message, host);
    return reconnectOnError?.(refusal) ?? false;
  };
  // The client asks for the slots over a copy of the connection to the node.
  const duplicate = node.duplicate.bind(node);
  node.duplicate = (override) => {
    const copy = duplicate(override);
    const send = copy.sendCommand.bind(copy);
    copy.sendCommand = (command, stream) => {
      const { resolve } = command;
      if (command.name === "cluster") command.resolve = (reply) => resolve(withHosts(reply, host));
      return send(command, stream);
    };
    return copy;
  };
}

/** A node answers `?` if its configuration wants a host name and gives none. */
const UNKNOWN = new Set(["", "?"]);

/** @param redirection such as `MOVED 3999 :6381` */
function withHost(redirection: string, host: string): string {
  return redirection.replace(/^((?:MOVED|ASK) \d+ )\??(?=:\d+$)/, (_, start: string) => start + host);
}

/** @param ranges the answer to CLUSTER SLOTS: first slot, last slot, and nodes by host and port */
function withHosts(ranges: unknown, host: string): unknown {
  if (!Array.isArray(ranges)) return ranges;
  return ranges.map((range: readonly unknown[]) =>
    range.map((node) => {
      if (!Array.isArray(node)) return node;
      const [named, ...rest] = node as [Buffer | string | null, ...unknown[]];
      return UNKNOWN.has((named ?? "").toString()) ? [host, ...rest] : node;
    }),
  );
}
