/** The location of clock.lua, the piece by which other pieces ask for the time. */

export const clockPiece = new URL("./clock.lua", import.meta.url);
