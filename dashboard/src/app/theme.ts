// Light or dark: as the system has it, unless the visitor chose.

import { useCallback, useSyncExternalStore } from "react";

export type Theme = "light" | "dark";

const KEPT = "unlinkabledfl.theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

/** Put the theme on the page, before anything is drawn, and follow the system from then on. */
export function startTheme(): void {
  announce();
  system.addEventListener("change", announce);
}

export function useTheme(): [Theme, () => void] {
  const theme = useSyncExternalStore(listen, current);
  const toggle = useCallback(() => {
    keep(current() === "dark" ? "light" : "dark");
    announce();
  }, []);
  return [theme, toggle];
}

/** What the style sheet gives a name, for whoever draws on a canvas. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function current(): Theme {
  const chosen = kept();
  return chosen ?? (system.matches ? "dark" : "light");
}

function listen(heard: () => void): () => void {
  listeners.add(heard);
  return () => listeners.delete(heard);
}

function announce(): void {
  document.documentElement.dataset["theme"] = current();
  for (const heard of listeners) heard();
}

function kept(): Theme | null {
  try {
    const value = localStorage.getItem(KEPT);
    return value === "light" || value === "dark" ? value : null;
  } catch {
    return null; // storage may be forbidden; the system's choice holds then
  }
}

function keep(theme: Theme): void {
  try {
    localStorage.setItem(KEPT, theme);
  } catch {
    // As above: the choice is not kept.
  }
}
