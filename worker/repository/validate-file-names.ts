/** No file that a configuration names lies outside its model's directory: what the name itself shows, before any file is touched. */
import type { ModelConfig } from "#shared/model/config.js";
import { LoadError } from "./load-error.js";

/** @throws LoadError */
export function validateFileNames(config: ModelConfig): void {
  const named: [what: string, name: string][] = [
    ["default_model_filename", config.default_model_filename],
    ...Object.values(config.cc_model_filenames).map((name): [string, string] => ["cc_model_filenames", name]),
    ...config.output.map(({ name, label_filename: file }): [string, string] => [`label_filename of '${name}'`, file]),
    ...(config.sequence_batching?.state ?? []).flatMap((state) =>
      state.initial_state.map((initial): [string, string] => [
        `data_file of state '${state.input_name}'`,
        initial.data_file ?? "",
      ]),
    ),
    ...config.model_warmup.flatMap((warmup) =>
      Object.values(warmup.inputs).map((input): [string, string] => [
        `input_data_file of warmup '${warmup.name}'`,
        input.input_data_file ?? "",
      ]),
    ),
  ];
  for (const [what, name] of named) {
    if (!staysInside(name)) {
      throw new LoadError(`${what}: '${name.replaceAll("\0", "\\0")}' must stay inside the model directory`);
    }
  }
}

/** Backslashes are refused too: a repository may be read on another system. */
function staysInside(name: string): boolean {
  return !name.startsWith("/") && !/[\0\\]/.test(name) && !name.split("/").includes("..");
}
