/**
 * Fills in the hosts that the nodes of a Cluster leave out of their answers. A node that has met no
 * other one, or whose `cluster-preferred-endpoint-type` is `unknown-endpoint`, names ports alone:
 * its clients find these at the host that they have asked. ioredis 6.0 drops a node without a host
 * from CLUSTER SLOTS, and follows a redirection to one at 127.0.0.1.
 */
import type { Cluster, Redis } from "ioredis";

/** Makes the client, and each copy that is made of it, use the hosts that they have asked. */
export function useAskedHosts(cluster: Cluster): Cluster {
  cluster.on("+node", fillHosts);
  // BullMQ makes a copy for its blocking reads.
  const duplicate = cluster.duplicate.bind(cluster);
  cluster.duplicate = (...how) => useAskedHosts(duplicate(...how));
  return cluster;
}

/** Puts this node's host into its answers, before the Cluster's client reads them. */
function fillHosts(node: Redis): void {
  const { host = "", reconnectOnError } = node.options;
  // The client calls this with each refusal of the node, and then follows what its text says.
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

/** A node answers `?` if it is to name itself by a host name and has none. */
const UNKNOWN = new Set(["", "?"]);

/** @param redirection such as `MOVED 3999 :6381` */
function withHost(redirection: string, host: string): string {
  return redirection.replace(/^((?:MOVED|ASK) \d+ )\??(?=:\d+$)/, (_, start: string) => start + host);
}

/** @param ranges what CLUSTER SLOTS answers: first slot, last slot, and nodes by host and port */
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
