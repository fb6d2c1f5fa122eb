/** Until requests carry keys, all clients are one tenant. */
export const onlyTenant = "default";
