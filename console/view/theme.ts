/** Light or dark: as the system says, until the user chooses. The browser remembers the choice. */
import { computed, signal } from "@preact/signals";

const PLACE = "baton.theme";

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const chosen = signal(localStorage.getItem(PLACE));
const systemIsDark = signal(prefersDark.matches);
prefersDark.addEventListener("change", ({ matches }) => (systemIsDark.value = matches));

/** Whether the page is dark. */
export const isDark = computed(() =>
  chosen.value === "dark" || chosen.value === "light" ? chosen.value === "dark" : systemIsDark.value,
);

/** Shows the page in the theme that the user has chosen before. */
export function beginTheme(): void {
  if (chosen.value === "light" || chosen.value === "dark") document.documentElement.dataset["theme"] = chosen.value;
}

export function toggleTheme(): void {
  const next = isDark.value ? "light" : "dark";
  document.documentElement.dataset["theme"] = next;
  localStorage.setItem(PLACE, next);
  chosen.value = next;
}
