/** How Triton begins what it says about one request's inputs; clients' logs and tests look for it. */
export function requestPrefix(id: string): string {
  return `[request id: ${id === "" ? "<id_unknown>" : id}] `;
}
