/** Begins the console in the browser. */
import { render } from "preact";
import { App } from "./app.js";
import { beginTheme } from "./view/theme.js";

beginTheme();
const place = document.getElementById("console");
if (place !== null) render(<App />, place);
