// Sends the forms of acts, and shows what the server says about them.
"use strict";
(() => {
  const box = () => document.getElementById("said");

  // Says why nothing was shown or done.
  const say = (text) => {
    const message = document.createElement("div");
    message.className = "said bad";
    message.setAttribute("role", "alert");
    const words = document.createElement("div");
    const line = document.createElement("p");
    line.textContent = text;
    words.append(line);
    message.append(words);
    box().replaceChildren(message);
  };
  const signedOut = "You are signed out. Nothing was done; sign in again with the link that lockkeeper login prints.";
  Object.assign(Lockkeeper, { acting: null, say, signedOut }); // acting: the form that was sent and has no response yet

  const shown = async (response) => {
    const text = await response.text();
    if (response.status === 401) { say(signedOut); return; }
    if ((response.headers.get("Content-Type") ?? "").startsWith("text/html")) {
      const content = document.createElement("template");
      content.innerHTML = text;
      box().replaceChildren(content.content);
      return;
    }
    try {
      const { message, next } = JSON.parse(text).error;
      say(message + (next ? ". Next: " + next : ""));
    } catch {
      say(`The server answered ${response.status}.`);
    }
  };

  // The key lets a form take effect at most once. It stays the same until there is a response: then
  // the person may send the form again, for example when the reason for a refusal is gone.
  const keys = new WeakMap();
  const keyOf = (form) => {
    if (!keys.has(form)) keys.set(form, crypto.getRandomValues(new Uint32Array(4)).join("-"));
    return keys.get(form);
  };

  // A form that took effect is closed and empty again.
  const close = (form) => {
    form.reset();
    const ask = form.closest("details.ask");
    if (ask) ask.open = false;
  };

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form.method !== "post" || !form.getAttribute("action").startsWith("/do/") || event.defaultPrevented) return;
    event.preventDefault();
    if (Lockkeeper.acting) return;
    const values = new FormData(form, event.submitter);
    values.set("idempotency_key", keyOf(form));
    Lockkeeper.acting = form;
    Lockkeeper.showBusy();
    let next = null;
    try {
      const response = await fetch(form.getAttribute("action"), { method: "POST", headers: { "Lockkeeper-Part": "-" }, body: new URLSearchParams(values) });
      keys.delete(form);
      next = response.headers.get("Lockkeeper-Next");
      await shown(response);
    } catch {
      say("The server could not be reached, so this may or may not have taken effect. Send it again: it takes effect at most once.");
    }
    Lockkeeper.acting = null;
    if (next !== null) close(form);
    if (next) Lockkeeper.go(next); else if (next === "") Lockkeeper.lookAtAll(); else Lockkeeper.touchAll();
    Lockkeeper.showBusy();
  });
})();
