/** Why a model cannot be served. The text is for the operator; the repository index prints it, so it names no path outside the model. */
export class LoadError extends Error {
  override readonly name = "LoadError";
}
