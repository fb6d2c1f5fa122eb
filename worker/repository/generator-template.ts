/** Where a folder keeps its chat template: in a file of its own, as newer tools export it, or in tokenizer_config.json, as one text or as several with names. */
import { z } from "zod";

const namedTemplates = z.array(z.looseObject({ name: z.string(), template: z.string() }));

export const templateField = z.union([z.string(), namedTemplates]).nullish();

export interface ChatTemplates {
  readonly chatTemplate: string | undefined;
  /** Takes the other's place when the prompt has tools. */
  readonly toolTemplate: string | undefined;
}

/** @param file chat_template.jinja's text, which wins. */
export function chooseTemplates(file: string | undefined, field: z.infer<typeof templateField>): ChatTemplates {
  if (file !== undefined) return { chatTemplate: file, toolTemplate: undefined };
  if (field == null || typeof field === "string") return { chatTemplate: field ?? undefined, toolTemplate: undefined };
  const named = (wanted: string): string | undefined => field.find(({ name }) => name === wanted)?.template;
  const only = field.length === 1 ? field[0]?.template : undefined;
  return { chatTemplate: named("default") ?? only, toolTemplate: named("tool_use") };
}
