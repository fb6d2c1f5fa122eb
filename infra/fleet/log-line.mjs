/** A line of a member's log, in words for a person: gateway and workers write JSON, the brokers text, and a crash whatever it likes. */

const WARN = 40; // pino's number
/** The same on every line, and known to whoever reads it. */
const ROUTINE = new Set(["time", "pid", "hostname", "name"]);

export function readLine(text) {
  if (text.startsWith("{")) {
    try {
      const { level, msg, ...details } = JSON.parse(text);
      return { message: msg, isWarning: level >= WARN, details };
    } catch {
      // looked like JSON and was not: shown as it is
    }
  }
  return { message: text, isWarning: false, details: {} };
}

export function describe({ message, details }) {
  const extra = Object.entries(details)

    .filter(([key, value]) => !ROUTINE.has(key) && value !== null && typeof value !== "object")
    .map(([key, value]) => `${key}=${value}`);
  const said = details.err?.message === undefined ? [] : [details.err.message];
  return [message, ...said, ...extra].join("  ").slice(0, 300);
}

/** Of the last lines, those that say what went wrong: of a stack trace that is the line above the stack. */
export function telling(lines) {
  const errors = lines.filter(({ message, isWarning }) => isWarning || /^\S*Error\b/.test(message));
  return (errors.length > 0 ? errors : lines).filter(({ message }) => message).slice(-3);
}
