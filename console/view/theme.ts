/** Light or dark: as the system says, until the user chooses. The browser remembers the choice. */
const PLACE = "baton.theme";

const prefersDark = matchMedia("(prefers-color-scheme: dark)");

/** Shows the page in the theme that the user has chosen before. */
export function beginTheme(): void {
  const chosen = localStorage.getItem(PLACE);
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;
}

export function toggleTheme(): void {
  const now = document.documentElement.dataset["theme"] ?? (prefersDark.matches ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  document.documentElement.dataset["theme"] = next;
  localStorage.setItem(PLACE, next);
}
