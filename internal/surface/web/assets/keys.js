// Keyboard shortcuts. A button, a link or a field has its key in data-key, for example
// data-key="t". Two keys in a row are separated by a space. The help lists the keys of the
// elements on the page. Keys do nothing while a person types.
"use strict";
(() => {
  const pause = 1200; // longest time between two keys in a row, in milliseconds
  let first = ""; // the first of two keys in a row
  let forget = 0;

  const isShown = (el) => el.getClientRects().length > 0 && !el.disabled;
  const isTyping = (el) => el && (el.isContentEditable || el.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=submit], [type=button])"));
  const withKeys = () => [...document.querySelectorAll("[data-key]")].filter(isShown);
  const keysOf = (el) => el.dataset.key.split(",");

  const wait = (key) => {
    clearTimeout(forget);
    first = key;
    document.documentElement.toggleAttribute("data-hints", key !== "");
    if (key) forget = setTimeout(() => wait(""), pause);
  };

  const press = (el) => {
    if (isTyping(el)) { el.focus(); return; }
    el.focus({ preventScroll: true });
    el.click();
  };

  // If no element has the key j or k, they move from row to row.
  const step = (by) => {
    const rows = [...document.querySelectorAll("[data-row]")].filter(isShown);
    if (rows.length === 0) return false;
    const at = rows.indexOf(document.activeElement?.closest("[data-row]"));
    const next = rows[Math.min(Math.max(at + by, 0), rows.length - 1)];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
    return true;
  };

  const said = (el) => el.dataset.says || el.getAttribute("aria-label") ||
    [...el.childNodes].filter((n) => n.nodeName !== "KBD").map((n) => n.textContent).join("").trim().replace(/\s+/g, " ");

  const help = () => {
    const dialog = document.getElementById("help");
    if (dialog.open) { dialog.close(); return; }
    const list = dialog.querySelector("[data-keys]");
    list.replaceChildren();
    const seen = new Set();
    for (const el of withKeys()) {
      if (seen.has(el.dataset.key)) continue;
      seen.add(el.dataset.key);
      const keys = document.createElement("dt");
      for (const key of keysOf(el)[0].split(" ")) {
        const k = document.createElement("kbd");
        k.textContent = key;
        keys.append(k, " ");
      }
      const what = document.createElement("dd");
      what.textContent = said(el);
      list.append(keys, what);
    }
    dialog.showModal();
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const typing = isTyping(document.activeElement);
    if (event.key === "Escape") {
      const ask = document.activeElement?.closest("details.ask[open]");
      if (ask) { ask.open = false; ask.querySelector("summary").focus(); } else if (typing) document.activeElement.blur();
      else document.getElementById("said")?.replaceChildren();
      return;
    }
    if (typing) return;
    if (event.key === "?") { event.preventDefault(); help(); return; }
    if (document.querySelector("dialog[open]")) return;
    const pressed = first ? first + " " + event.key : event.key;
    const keyed = withKeys();
    const el = keyed.find((e) => keysOf(e).includes(pressed));
    if (el) {
      event.preventDefault();
      wait("");
      // A key sends a form once: not while it is held down, and not before the response to
      // the previous form is shown.
      const acts = el.matches("button[type=submit], button:not([type])");
      if (acts && (event.repeat || document.body.classList.contains("busy"))) return;
      press(el);
      return;
    }
    if (keyed.some((e) => keysOf(e).some((k) => k.startsWith(pressed + " ")))) { wait(pressed); return; }
    wait("");
    if (pressed === "j" && step(1) || pressed === "k" && step(-1)) event.preventDefault();
  });

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-help]")) help();
    if (event.target.closest("[data-close]")) event.target.closest("dialog")?.close();
    if (event.target.closest("[data-forget]")) document.getElementById("said")?.replaceChildren();
  });
})();
