// The reader's choice of light or dark, kept where the browser lets us keep it. Runs in the head, before the first
// paint, so that a page never flashes in the wrong theme. Any button with the attribute data-theme-toggle changes it.
(() => {
  const root = document.documentElement;
  const KEY = "prbench-theme";

  function remembered() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // storage is refused to some pages opened from disk
    }
  }

  function remember(theme) {
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // The choice then lasts as long as the page.
    }
  }

  const current = () => root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

  function label(button) {
    const next = current() === "dark" ? "light" : "dark";
    button.setAttribute("aria-label", `Switch to the ${next} theme`);
    button.title = `Switch to the ${next} theme`;
  }

  const chosen = remembered();
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;

  document.addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("[data-theme-toggle]")) {
      label(button);
      button.addEventListener("click", () => {
        root.dataset.theme = current() === "dark" ? "light" : "dark";
        remember(root.dataset.theme);
        document.querySelectorAll("[data-theme-toggle]").forEach(label);
      });
    }
  });
})();
