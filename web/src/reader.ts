// What the reader prefers, kept in their browser: a link from somebody else does not change it.

import type { State } from "./state";
import type { Language } from "./words";

type Preference = Pick<State, "language" | "theme">;
const NAME = "zeropilot reader";

function kept(): Partial<Preference> {
  try {
    const { language, theme } = JSON.parse(localStorage.getItem(NAME) ?? "{}") as Partial<Preference>;
    return {
      ...(language === "en" || language === "zh" ? { language } : {}),
      ...(theme === "auto" || theme === "light" || theme === "dark" ? { theme } : {}),
    };
  } catch {
    return {};
  }
}

export function preferred(): Partial<Preference> {
  const language: Language = navigator.languages.some((name) => name.toLowerCase().startsWith("zh")) ? "zh" : "en";
  return { language, ...kept() };
}

/// Keeps what is a preference in a change.
export function keep(change: Partial<State>): void {
  const { language, theme } = change;
  if (!language && !theme) return;
  try {
    localStorage.setItem(NAME, JSON.stringify({ ...kept(), ...(language && { language }), ...(theme && { theme }) }));
  } catch {
    // A browser may keep nothing; then the choice lasts as long as the page.
  }
}
