/** Why start or test cannot go on, in one sentence that says what to do: printed as it is, with no stack trace, and exit 1. */
export class Refusal extends Error {}

/** Runs a command's main function; whatever it throws ends the process with status 1. */
export async function runMain(main) {
  try {
    await main();
  } catch (error) {
    // A stack trace is for a mistake of ours; what a person can mend is a sentence.
    console.error(error instanceof Refusal ? `\n${error.message}` : error);
    process.exit(1);
  }
}
