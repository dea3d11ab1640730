// Applies what changed in a part of the page, without touching what a person has begun: a field
// that is filled in, an open form, the focus, the selection, scroll positions and open details.
"use strict";
var Lockkeeper = (() => {
  const fields = "textarea, select, input:not([type=hidden], [type=submit], [type=button])";

  // --- what a person has begun ----------------------------------------------------------

  const isDirty = (field) => {
    if (field.matches("select")) return [...field.options].some((o) => o.selected !== o.defaultSelected) && field.selectedIndex > 0;
    if (field.matches("[type=checkbox], [type=radio]")) return field.checked !== field.defaultChecked;
    return field.value !== field.defaultValue;
  };
  const isTyping = (field) => field === document.activeElement && field.matches("textarea, select, input:not([type=checkbox], [type=radio])");

  // The forms in an element that a person has begun. An empty search field with the cursor is not one.
  const begun = (root) => [...root.querySelectorAll("form")].filter((form) =>
    form.closest("details.ask[open]") || [...form.querySelectorAll(fields)].some((f) => isDirty(f) || isTyping(f) && !f.id));
  const isBegun = (node) => node.nodeType === Node.ELEMENT_NODE &&
    (node.matches("form") && begun(node.parentNode).includes(node) || begun(node).length > 0);

  // Two forms are the same if they do the same to the same thing.
  const purpose = (form) => JSON.stringify([form.getAttribute("action"),
    [...form.querySelectorAll("input[type=hidden]")].filter((f) => f.name !== "idempotency_key").map((f) => [f.name, f.getAttribute("value")])]);

  // Reports whether a form has the same place and purpose in the new content of an element.
  const isSameIn = (form, old, content) => {
    const next = [...content.querySelectorAll("form")][[...old.querySelectorAll("form")].indexOf(form)];
    return !!next && purpose(next) === purpose(form);
  };

  // Reports whether a form that a person has begun goes on in the new content of an element above
  // it: it is the same, or its row is removed as a whole and stays until then.
  const goesOn = (form, target, content) => {
    for (let el = form.parentElement.closest("[id]"); el && el !== target && target.contains(el); el = el.parentElement.closest("[id]")) {
      const next = content.querySelector("#" + CSS.escape(el.id));
      if (next) return next.hasAttribute("data-same") || isSameIn(form, el, next);
    }
    const row = form.closest("[data-row][id]");
    return row && row !== target && target.contains(row) || isSameIn(form, target, content);
  };

  // --- applying ---------------------------------------------------------------------------

  const leftovers = new Set(); // removed elements that stay, because a person has begun a form in them
  const sweep = () => {
    for (const el of leftovers) {
      if (el.isConnected && isBegun(el)) continue;
      el.remove();
      leftovers.delete(el);
    }
  };

  const callbacks = (force) => ({
    beforeNodeMorphed: (is, next) => {
      if (next.nodeType !== Node.ELEMENT_NODE) return true;
      if (next.hasAttribute("data-same")) return false;
      if (is.nodeName === "TIME" && is.getAttribute("datetime") === next.getAttribute("datetime")) return false; // it has its age
      if (is.matches?.("[data-live]") && is.dataset.from && is.dataset.from === next.dataset?.from && parts.has(is.id)) return false; // it has its own requests
      if (is.matches?.("form, details.ask[open]") && next.matches("form, details")) {
        const [was, will] = [is, next].map((el) => el.matches("form") ? el : el.querySelector("form"));
        const other = was && isBegun(was) && (!will || purpose(was) !== purpose(will));
        if (other && !force) return false; // what a person has begun never becomes part of another form
        if (other && is.matches("details")) is.open = false;
        if (other) was.reset();
      }
      if (is.matches?.(fields) && (isTyping(is) || isDirty(is))) return false;
      leftovers.delete(is);
      return true;
    },
    beforeNodeRemoved: (is) => {
      if (force || !isBegun(is)) return true;
      leftovers.add(is);
      return false;
    },
    beforeAttributeUpdated: (name, el) => !(name === "open" && el.nodeName === "DETAILS") && !(name === "data-hash" && el.dataset.live !== undefined),
  });

  const parts = new Map(); // id of a part that asks for itself → the hash of what it shows

  const parsed = (html) => {
    const t = document.createElement("template");
    t.innerHTML = html;
    return t.content;
  };

  const atEnd = (el) => el.scrollHeight - el.scrollTop - el.clientHeight < 24;
  const toEnd = (root) => root.querySelectorAll("[data-tail]").forEach((el) => { el.scrollTop = el.scrollHeight; });

  // Replaces all of a part, as if the page had been loaded.
  const replace = (part, html) => {
    leftovers.clear();
    part.replaceChildren(parsed(html));
    toEnd(part);
  };

  // Applies a reply. It reports false, and changes nothing, if that would take away a form that a
  // person has begun. With force, such a form goes.
  const apply = (part, reply, force) => {
    sweep();
    const changes = reply.html === undefined ? reply.changes ?? [] : [{ id: "", html: reply.html }];
    const planned = changes.map(({ id, html }) => ({ target: id ? document.getElementById(id) : part, content: parsed(html), whole: !id }));
    if (planned.some(({ target }) => !target || !part.contains(target))) return null; // the page is not what the server takes it for
    if (!force) {
      for (const form of begun(part)) {
        const over = planned.find(({ target }) => target.contains(form));
        if (over && !goesOn(form, over.target, over.content)) return false;
      }
    }
    const tails = [...part.querySelectorAll("[data-tail]")].filter(atEnd);
    for (const { target, content, whole } of planned) {
      if (whole) Idiomorph.morph(target, content, { morphStyle: "innerHTML", callbacks: callbacks(force) });
      else Idiomorph.morph(target, content.firstElementChild, { morphStyle: "outerHTML", callbacks: callbacks(force) });
    }
    tails.forEach((el) => { if (el.isConnected) el.scrollTop = el.scrollHeight; });
    return true;
  };

  return { apply, replace, sweep, toEnd, parts };
})();
