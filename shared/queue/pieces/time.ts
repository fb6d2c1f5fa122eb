/** The location of time.lua, the piece that gives scripts their time. */

export const timePiece = new URL("./time.lua", import.meta.url);
