/** The secret that the processes of a simulation share, as in the deployment's record. */

const bytes = Buffer.alloc(32, 7);

export const secret = (): Buffer => bytes;
