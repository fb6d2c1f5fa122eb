/** Exit codes that others act on. Imports nothing: a supervisor reads it before it starts its worker. */

/** Wrong settings: starting again would not help. EX_CONFIG of sysexits. */
export const EXIT_UNUSABLE = 78;
