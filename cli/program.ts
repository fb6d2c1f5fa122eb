/** The program: verbs, general options, and error messages for wrong arguments. */
import { Command } from "commander";
import { addBatch } from "./verbs/batch.js";
import { addCompletion } from "./verbs/completion.js";
import { addDead } from "./verbs/dead.js";
import { addFleet } from "./verbs/fleet.js";
import { addGenerate } from "./verbs/generate.js";
import { addInfer } from "./verbs/infer.js";
import { addJobs } from "./verbs/jobs.js";
import { addKeys } from "./verbs/keys.js";
import { addModels } from "./verbs/models.js";
import { addSchedules } from "./verbs/schedules.js";
import { addSequences } from "./verbs/sequences.js";
import type { OpenSession } from "./verbs/session.js";

/** The options of every verb. */
export interface GeneralOptions {
  readonly url?: string;
  readonly key?: string;
  readonly json?: true;
}

const AFTER_HELP = `
Environment:
  BATON_URL      where a gateway listens (http://127.0.0.1:8000)
  BATON_API_KEY  the key that it is asked with
  NO_COLOR       no colours

Exit codes:
  0 done, 1 it failed, was cancelled or expired, 2 wrong arguments, 3 not found,
  4 refused, 5 unreachable or out of order, 130 interrupted
`;

/**
 * Every error that commander finds leaves the program as a CommanderError.
 * @param complain writes the error messages about arguments
 */
export function buildProgram(version: string, open: OpenSession, complain: (text: string) => void): Command {
  const program = new Command("baton");
  program
    .description("Ask a fleet of Baton: models, answers, jobs, sequences.")
    .version(version)
    .option("--url <url>", "where a gateway listens; else BATON_URL")
    .option("--key <key>", "the key that it is asked with; else BATON_API_KEY, which others cannot see")
    .option("--json", "print results as JSON")
    .configureHelp({ showGlobalOptions: true })
    .addHelpText("after", AFTER_HELP);
  for (const add of [
    addModels,
    addInfer,
    addGenerate,
    addJobs,
    addBatch,
    addSchedules,
    addDead,
    addSequences,
    addFleet,
    addKeys,
    addCompletion,
  ])
    add(program, open);
  speakPlainly(program, "baton", complain);
  return program;
}

/** Makes each error message about arguments a single line, and adds a line that names the help. */
function speakPlainly(command: Command, name: string, complain: (text: string) => void): void {
  command.exitOverride().configureOutput({
    writeErr: complain,
    outputError: (text) => {
      const sentence = text
        .replace(/^error: /, "")
        .trim()
        .replaceAll(/\n+/g, " ");
      complain(`baton: ${sentence}\nSee: ${name} --help\n`);
    },
  });
  for (const one of command.commands) speakPlainly(one, `${name} ${one.name()}`, complain);
}
