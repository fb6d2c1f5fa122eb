/** Where the piece lies that gives scripts their time. */

export const timePiece = new URL("./time.lua", import.meta.url);
