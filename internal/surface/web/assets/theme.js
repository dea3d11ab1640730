// Applies the theme that the person chose, before anything is drawn. The default is the theme
// of the system.
"use strict";
(() => {
  const key = "lockkeeper-theme";
  const root = document.documentElement;
  const chosen = () => {
    try { return localStorage.getItem(key) || ""; } catch { return ""; }
  };
  const show = (theme) => {
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
  };
  show(chosen());
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-next]")) return;
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = chosen() || (dark ? "dark" : "light");
    const next = now === "dark" ? "light" : "dark";
    try { localStorage.setItem(key, next); } catch { /* the choice applies to this page only */ }
    show(next);
  });
})();
