/** The models that an ensemble alone keeps loaded. Pure. */
import { z } from "zod";
import type { Announcement, ServedModel } from "#shared/contract/announcement.js";

const scheduled = z.object({
  ensemble_scheduling: z.object({ step: z.array(z.object({ model_name: z.string() })) }).optional(),
});

/**
 * @param workers of the fleet
 * @returns the names of the models that the steps of an ensemble run, those of ensembles within it
 * included, without the models that other ensembles need
 */
export function dependentsOf(workers: readonly Pick<Announcement, "models">[], ensemble: string): string[] {
  const models = workers.flatMap((worker) => worker.models);
  const own = stepsBelow(models, [ensemble]);
  const others = models.map(({ name }) => name).filter((name) => name !== ensemble && !own.has(name));
  const shared = stepsBelow(models, others);
  return [...own].filter((name) => !shared.has(name));
}

function stepsBelow(models: readonly ServedModel[], ensembles: readonly string[]): ReadonlySet<string> {
  const below = new Set<string>();
  const look = (name: string) => {
    for (const step of models.filter((model) => model.name === name).flatMap(stepsOf)) {
      if (below.has(step)) continue;
      below.add(step);
      look(step);
    }
  };
  for (const name of ensembles) look(name);
  return below;
}

function stepsOf({ config }: ServedModel): string[] {
  return (scheduled.parse(config).ensemble_scheduling?.step ?? []).map(({ model_name: name }) => name);
}
