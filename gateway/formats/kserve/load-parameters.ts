/** The parameters of a request that loads a model, in every transport. */
import { InferenceError } from "#shared/errors.js";

/**
 * @param asText reads the value of a parameter, or refuses it
 * @returns the parameter `config`: a ModelConfig as JSON
 * @throws InferenceError for any other parameter
 */
export function loadConfig<V>(
  parameters: Readonly<Record<string, V>>,
  asText: (name: string, value: V) => string,
): string | undefined {
  let config: string | undefined;
  for (const [name, value] of Object.entries(parameters)) {
    if (name === "config") config = asText(name, value);
    else if (name.startsWith("file:")) {
      const why = "workers load the files of their own repository";
      throw new InferenceError("unsupported", `the load parameter '${name}' is not supported: ${why}`);
    } else throw new InferenceError("invalid_argument", `unrecognized load parameter '${name}'.`);
  }
  return config;
}
