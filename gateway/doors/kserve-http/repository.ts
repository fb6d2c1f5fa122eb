/**
 * Triton's paths that load and unload models. A fleet whose workers load their models by themselves
 * refuses both. Triton's status for that is 503, but waiting changes nothing, so the code asks for
 * no retry.
 */
import { z } from "zod";
import { fixedError, InferenceError } from "#shared/errors.js";
import { asBoolean, asString, isObject, parseRequestJson } from "#shared/json/members.js";
import type { JsonValue } from "#shared/json/parse.js";
import type { Client } from "../../admission/inference.js";
import type { Asked } from "../../api/endpoint/asked.js";
import { endpointsOf, type Endpoint } from "../../api/endpoint/endpoint.js";
import { modelOf } from "../../api/endpoint/model-path.js";
import { errorReply } from "../../formats/errors.js";
import { emptyReply, type Reply } from "../../formats/reply.js";
import type { RepositoryService } from "../../service/observing/repository.js";

/** The parameter that unloads the models of an ensemble's steps with it. */
export const DEPENDENTS = "unload_dependents";

const endpoint = endpointsOf<RepositoryService>("model-repository");

export const controlEndpoints: readonly Endpoint<RepositoryService>[] = [
  control("load", "Loads a model in all workers of the fleet, or loads it again.", async (asked, repository) => {
    const config = await asked.body({ encoding: undefined }, (body) => loadConfig(parametersIn(body), asText));
    await repository.load(asked.caller, modelOf(asked).model, config, clientOf(asked));
  }),
  control("unload", "Unloads a model in all workers of the fleet.", async (asked, repository) => {
    const withSteps = await asked.body({ encoding: undefined }, (body) => {
      const dependents = parametersIn(body)[DEPENDENTS];
      return dependents === undefined ? false : asBoolean(dependents, DEPENDENTS);
    });
    await repository.unload(asked.caller, modelOf(asked).model, withSteps, clientOf(asked));
  }),
  ...["load", "unload"].map((action) =>
    endpoint({
      method: "POST",
      path: `/v2/repository/:repository/models/:model/${action}`,
      otherRight: "operator",
      does: `Refuses to ${action} a model of a repository by its name.`,
      answers: {},
      refusals: ["unsupported"],
      handle() {
        throw fixedError("unsupported", "repositoryName");
      },
    }),
  ),
];

/**
 * Reads the parameters of a request that loads a model, in every transport.
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

function control(
  action: string,
  does: string,
  act: (asked: Asked, repository: RepositoryService) => Promise<void>,
): Endpoint<RepositoryService> {
  return endpoint({
    method: "POST",
    path: `/v2/repository/models/:model/${action}`,
    right: "operator",
    isTenantOptional: true,
    does,
    body: "application/json",
    mayBeEmpty: true,
    answers: {
      200: { says: action === "load" ? "A worker serves the model as asked." : "No worker serves the model." },
      503: {
        says: "Workers load and unload models by themselves (`BATON_MODEL_CONTROL`).",
        shape: () => z.strictObject({ error: z.string(), code: z.literal("unsupported") }),
      },
    },
    refusals: ["unknown_model", "unsupported", "outcome_unknown"],
    async handle(asked, repository): Promise<Reply> {
      if (!repository.isExplicit) return errorReply(fixedError("unsupported", "modelControl"), "kserve", 503);
      await act(asked, repository);
      return emptyReply;
    },
  });
}

/** Reads the member `parameters`. Other members have no meaning. @throws InferenceError */
function parametersIn(body: Buffer): Readonly<Record<string, JsonValue>> {
  if (body.length === 0) return {};
  const { parameters = {} } = parseRequestJson(body);
  if (!isObject(parameters)) {
    throw new InferenceError("invalid_argument", "Unable to parse 'parameters': expected an object");
  }
  return parameters;
}

function clientOf({ outgoing }: Asked): Pick<Client, "hasLeft"> {
  return {
    get hasLeft() {
      return outgoing.destroyed;
    },
  };
}

function asText(name: string, value: JsonValue): string {
  return asString(value, name);
}
