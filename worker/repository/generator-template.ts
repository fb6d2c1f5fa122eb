/** Where a folder keeps its chat template: in a file of its own, as newer tools export it, or in tokenizer_config.json, as one text or as several with names. */
import { z } from "zod";

const namedTemplates = z.array(z.looseObject({ name: z.string(), template: z.string() }));

export const templateField = z.union([z.string(), namedTemplates]).nullish();

/** @param file chat_template.jinja's text, which wins. */
export function chooseTemplate(file: string | undefined, field: z.infer<typeof templateField>): string | undefined {
  if (file !== undefined) return file;
  if (field == null || typeof field === "string") return field ?? undefined;
  const only = field.length === 1 ? field[0]?.template : undefined;
  return field.find(({ name }) => name === "default")?.template ?? only;
}
