// Copies the text of the element that a button names in data-copy. A browser has a clipboard only for
// an address that it trusts, so otherwise the text is selected and copied as a person does it.
"use strict";
(() => {
  const shown = 2000; // how long the button says the result, in milliseconds

  const select = (from) => {
    const range = document.createRange();
    range.selectNodeContents(from);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  };

  const copy = async (from) => {
    try {
      await navigator.clipboard.writeText(from.textContent);
      return true;
    } catch {
      select(from);
      return document.execCommand("copy");
    }
  };

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button || button.dataset.was) return;
    const done = await copy(document.getElementById(button.dataset.copy));
    button.dataset.was = button.textContent;
    button.textContent = done ? "Copied" : "Selected: press Ctrl-C";
    setTimeout(() => {
      button.textContent = button.dataset.was;
      delete button.dataset.was;
    }, shown);
  });
})();
