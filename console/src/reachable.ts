// Retries while the server cannot be reached.

export const unreachable = "The server cannot be reached. The console tries again every few seconds.";

const pause = 3000; // milliseconds

/** Calls a function once the server answers; returns a function that stops waiting. */
export function whenReachable(then: () => void): () => void {
  let stopped = false;
  const timer = setInterval(async () => {
    try {
      const { ok } = await fetch("/console", { cache: "no-store" });
      if (!ok || stopped) return;
      stopped = true;
      clearInterval(timer);
      then();
    } catch {
      // still unreachable
    }
  }, pause);
  return () => {
    stopped = true;
    clearInterval(timer);
  };
}
