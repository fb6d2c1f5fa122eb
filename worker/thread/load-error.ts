/**
 * Says why the worker cannot serve a model. The text is for the operator, but the repository index
 * shows it to clients, so it names no path outside the model.
 */
export class LoadError extends Error {
  override readonly name = "LoadError";
}
