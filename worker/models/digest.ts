/** The digest of a model: of all facts that decide its answers. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";

/**
 * Files of `cc_model_filenames` do not count, because each is the same model, built for a card.
 * Workers with different cards serve the model together, and may lack the files of other cards.
 *
 * @param file the default file
 */
export async function digestOf(config: string, files: readonly string[]): Promise<string> {
  const hash = createHash("sha256").update(config);
  for (const file of files) for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
