/**
 * A load balancer as before real gateways. A gateway that reports itself not ready gets no clients.
 * A stopping gateway reports this before it stops listening.
 */

export interface Balancer {
  /** The gateways that were ready at the last look, or all gateways if none was ready. */
  readonly urls: () => readonly string[];
  stop(): void;
}

/** Much shorter than the time for which a stopping gateway still listens. */
const LOOK_EVERY_MS = 100;

export function balance(all: readonly string[]): Balancer {
  let ready = all;
  const looking = setInterval(() => {
    void Promise.all(all.map(isReady)).then((answers) => {
      const now = all.filter((_, i) => answers[i]);
      ready = now.length > 0 ? now : all;
    });
  }, LOOK_EVERY_MS);
  return { urls: () => ready, stop: () => clearInterval(looking) };
}

async function isReady(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/v2/health/ready`, {
      signal: AbortSignal.timeout(1_000),
      headers: { connection: "close" },
    });
    await answer.arrayBuffer();
    return answer.status === 200;
  } catch {
    return false;
  }
}
