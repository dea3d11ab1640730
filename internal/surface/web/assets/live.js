// Keeps the page current. The event stream says what changed. Each part of the page names its
// topics in data-live. When one of them changes, the part is requested again as HTML. A part in
// which the person is typing is not replaced; a button says that it is out of date.
"use strict";
(() => {
  const calm = 400;      // minimum time between two requests of one part, in milliseconds
  const slow = 15000;    // interval of requests without an event: some changes have none
  const patience = 2000; // how long the connection may be lost before the banner says so
  const aside = 10000;   // how long a hidden page keeps its connection

  const meta = (name) => document.querySelector(`meta[name="lockkeeper-${name}"]`)?.content ?? "";
  const topics = JSON.parse(meta("topics") || "{}"); // kind of event → topics
  const ahead = Date.parse(meta("now")) - Date.now(); // how far the server's clock is ahead of ours
  let seen = meta("seq"); // number of the last event that the page reflects

  // --- parts -------------------------------------------------------------------------

  const parts = () => [...document.querySelectorAll("[data-live]")];
  const looks = new Map(); // id of a part → { at: time of its last request, timer: of its next one }
  let missed = false; // something changed while the page was hidden
  let acting = null; // the form that was sent and has no response yet
  let arriving = false; // the person followed a link: show the new content from its beginning
  const changed = () => document.getElementById("changed");

  // Reports whether the person is about to enter something in a part. An empty field with an id
  // does not count, because it keeps the cursor.
  const isInUse = (part) => {
    const at = document.activeElement;
    if (part.contains(at) && (at.matches("select") || at.matches("textarea, input:not([type=checkbox], [type=radio])") && !at.id)) return true;
    if (part.querySelector("details.ask[open]")) return true;
    return [...part.querySelectorAll("textarea, input:not([type=hidden], [type=checkbox], [type=radio])")].some((f) => f.value !== f.defaultValue);
  };

  const look = (part, force) => {
    if (document.hidden) { missed = true; return; }
    if (!force && acting) return; // the response to the form refreshes every part
    if (!force && isInUse(part)) { changed().hidden = false; return; }
    const mine = looks.get(part.id) ?? {};
    clearTimeout(mine.timer);
    looks.set(part.id, { at: Date.now() });
    htmx.ajax("GET", part.dataset.from || here(), { source: part, target: part, swap: "innerHTML" }).catch(() => { /* htmx:sendError handles it */ });
  };
  const here = () => location.pathname + location.search;

  // A response that arrives after the person has left belongs to the previous page.
  const isOld = (event) => !event.detail.elt.dataset.from && event.detail.pathInfo.requestPath !== here();

  const soon = (part) => {
    const mine = looks.get(part.id) ?? { at: 0 };
    if (mine.timer) return;
    const wait = Math.max(20, mine.at + calm - Date.now());
    const timer = setTimeout(() => {
      looks.set(part.id, { at: mine.at });
      const still = document.getElementById(part.id);
      if (still) look(still, false);
    }, wait);
    looks.set(part.id, { at: mine.at, timer });
  };

  const touch = (names) => {
    for (const part of parts()) {
      if (part.dataset.live.split(" ").some((t) => names.includes(t))) soon(part);
    }
  };
  const touchAll = () => parts().forEach(soon);
  const lookAtAll = (isArrival = false) => {
    changed().hidden = true;
    arriving = isArrival;
    showBusy();
    parts().forEach((part) => look(part, true));
  };

  setInterval(() => {
    if (document.hidden) return;
    for (const part of parts()) {
      const every = Number(part.dataset.every) || slow;
      if (Date.now() - (looks.get(part.id)?.at ?? loaded) >= every) soon(part);
    }
  }, 1000);
  const loaded = Date.now();

  // --- the connection ----------------------------------------------------------------

  let source = null;
  let lostAt = 0;
  let retry = 0; // number of failed attempts
  let telling = 0;
  let again = 0;

  const clock = (ms) => new Date(ms + ahead).toLocaleTimeString([], { hour12: false });

  const show = (state, text) => {
    const line = document.getElementById("live");
    line.dataset.state = state;
    line.textContent = text;
  };

  const isBack = () => {
    clearTimeout(telling);
    show("live", "live");
    document.getElementById("lost").hidden = true;
    if (lostAt) touchAll();
    lostAt = 0;
    retry = 0;
  };

  const isLost = () => {
    if (!lostAt) {
      lostAt = Date.now();
      telling = setTimeout(() => {
        show("lost", "not connected");
        const banner = document.getElementById("lost");
        const since = document.createElement("time");
        since.dateTime = new Date(lostAt + ahead).toISOString();
        since.setAttribute("aria-live", "off"); // screen readers must not announce it every second
        since.append(clock(lostAt), " (", document.createElement("b"), ")");
        banner.querySelector("[data-text]").replaceChildren("Not connected since ", since,
          ". This page may be out of date. It reconnects by itself, and then shows what happened meanwhile.");
        tick();
        banner.hidden = false;
      }, patience);
    }
    if (source?.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    clearTimeout(again);
    again = setTimeout(connect, Math.min(15000, 500 * 2 ** retry++));
  };

  const heard = (event) => {
    if (event.lastEventId) seen = event.lastEventId;
    const about = topics[event.type];
    if (about) touch(about.split(" ")); else touchAll();
  };

  const connect = () => {
    source?.close();
    source = new EventSource("/events" + (seen ? "?after=" + encodeURIComponent(seen) : "")); // without a number, only new events are sent
    source.onopen = isBack;
    source.onerror = isLost;
    source.onmessage = heard;
    for (const kind of Object.keys(topics)) source.addEventListener(kind, heard);
  };

  let leaving = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(leaving);
    if (document.hidden) {
      // A browser has few connections for one server: a hidden page closes its connection.
      leaving = setTimeout(() => { source?.close(); source = null; missed = true; show("", "paused"); }, aside);
      return;
    }
    if (!source) connect();
    if (missed) { missed = false; touchAll(); }
  });
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (event) => { if (event.persisted) { connect(); touchAll(); } });

  // --- navigation within a page ---------------------------------------------------------

  const go = (url) => {
    history.pushState(null, "", url);
    lookAtAll(true);
  };
  addEventListener("popstate", () => lookAtAll(true));

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-in-page]");
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(link.getAttribute("href"));
  });
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-in-page]");
    if (!form) return;
    event.preventDefault();
    const asked = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
    go(form.getAttribute("action") + (asked.size ? "?" + asked : ""));
  });
  document.addEventListener("change", (event) => {
    event.target.closest("form[data-in-page][data-at-once]")?.requestSubmit();
  });

  // --- replacing parts without losing the position ---------------------------------------

  const shown = new Map(); // id of a part → its current HTML without times
  const timeless = (html) => html.replace(/<time[^>]*>.*?<\/time>/gs, "").replace(/name="idempotency_key" value="[^"]*"/g, "");
  let kept = null; // open sections and scroll positions of the part that is being replaced

  const atEnd = (el) => el.scrollHeight - el.scrollTop - el.clientHeight < 24;
  const toEnd = (root) => root.querySelectorAll("[data-tail]").forEach((el) => { el.scrollTop = el.scrollHeight; });

  // The error message of a response that is not HTML.
  const reason = (xhr) => {
    try {
      const { message, next } = JSON.parse(xhr.responseText).error;
      return message + (next ? ". Next: " + next : "");
    } catch {
      return `The server answered ${xhr.status}.`;
    }
  };

  const say = (text) => {
    const box = document.createElement("div");
    box.className = "said bad";
    box.setAttribute("role", "alert");
    const words = document.createElement("div");
    const line = document.createElement("p");
    line.textContent = text;
    words.append(line);
    box.append(words);
    document.getElementById("said").replaceChildren(box);
  };

  addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, target } = event.detail;
    if (xhr.status === 401) {
      event.detail.shouldSwap = false;
      say("You are signed out. Nothing was done; sign in again with the link that lockkeeper login prints.");
      return;
    }
    if (!(xhr.getResponseHeader("Content-Type") ?? "").startsWith("text/html")) {
      event.detail.shouldSwap = false;
      say(reason(xhr));
      return;
    }
    if (!target.matches("[data-live]")) return;
    if (isOld(event)) { event.detail.shouldSwap = false; return; }
    const text = timeless(xhr.responseText);
    if (shown.get(target.id) === text && !arriving) { event.detail.shouldSwap = false; return; }
    shown.set(target.id, text);
    kept = {
      open: new Map([...target.querySelectorAll("details[id]")].map((d) => [d.id, d.open])),
      scroll: new Map([...target.querySelectorAll("[data-keep][id]")].map((el) => [el.id, [el.scrollLeft, el.scrollTop]])),
      tail: new Map([...target.querySelectorAll("[data-tail][id]")].map((el) => [el.id, atEnd(el)])),
    };
  });

  addEventListener("htmx:afterSwap", (event) => {
    const target = event.detail.target;
    if (!target.matches?.("[data-live]") || !kept) return;
    for (const [id, open] of arriving ? [] : kept.open) {
      const d = document.getElementById(id);
      if (d) d.open = open;
    }
    for (const [id, [x, y]] of kept.scroll) document.getElementById(id)?.scrollTo(x, y);
    target.querySelectorAll("[data-tail]").forEach((el) => { if (kept.tail.get(el.id) ?? true) el.scrollTop = el.scrollHeight; });
    kept = null;
    if (arriving) {
      arriving = false;
      showBusy();
      target.querySelector("[data-focus]")?.focus({ preventScroll: true });
      target.querySelector("[data-list] [aria-current]")?.scrollIntoView({ block: "nearest" });
      if (target.querySelector("[data-top]")) scrollTo(0, 0);
    }
    tick();
  });

  // --- acts ------------------------------------------------------------------------------

  // While a response or the next page is loading, keys send no answer: the person has not yet
  // seen the decision that the key would answer.
  const showBusy = () => document.body.classList.toggle("busy", acting !== null || arriving);
  const isAct = (event) => event.detail.requestConfig.verb !== "get";

  // The page sends the form itself, because the form may be replaced before the response.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post" || !form.getAttribute("action").startsWith("/do/") || event.defaultPrevented) return;
    event.preventDefault();
    if (acting) return;
    acting = form;
    showBusy();
    htmx.ajax("POST", form.getAttribute("action"), { source: document.getElementById("main"), target: "#said", swap: "innerHTML", values: new FormData(form, event.submitter) })
      .catch(() => { /* htmx:sendError handles it */ });
  });

  addEventListener("htmx:sendError", (event) => {
    if (isAct(event)) say("The server could not be reached, so this may or may not have taken effect. Send it again: it takes effect at most once.");
    else isLost();
  });
  // After a response, the form gets a new key, because the person may send it again when the
  // reason for a refusal is gone. Without a response it keeps its key, so that it takes effect
  // at most once.
  addEventListener("htmx:afterRequest", (event) => {
    const xhr = event.detail.xhr;
    if (isAct(event)) {
      const key = acting.querySelector("input[name=idempotency_key]");
      if (xhr.status && key) key.value = crypto.getRandomValues(new Uint32Array(4)).join("-");
      acting = null;
      const next = xhr.getResponseHeader("Lockkeeper-Next");
      if (next) go(next); else if (next === "") lookAtAll(); else touchAll();
    } else if (!isOld(event)) {
      arriving = false;
    }
    showBusy();
  });
  document.addEventListener("click", (event) => { if (event.target.closest("#changed")) lookAtAll(); });

  // --- ages --------------------------------------------------------------------------------

  const span = (s) => {
    if (s < 60) return `${s}s`;
    if (s < 3600) return `${Math.floor(s / 60)}m`;
    if (s < 48 * 3600) return `${Math.floor(s / 3600)}h ${String(Math.floor(s / 60) % 60).padStart(2, "0")}m`;
    return `${Math.floor(s / 86400)}d`;
  };
  const tick = () => {
    const now = Date.now() + ahead;
    for (const el of document.querySelectorAll("time[datetime] > b")) {
      const s = Math.round((now - Date.parse(el.parentNode.getAttribute("datetime"))) / 1000);
      const text = s < 0 ? `in ${span(-s)}` : `${span(s)} ago`;
      if (el.textContent !== text) el.textContent = text;
    }
  };
  setInterval(() => { if (!document.hidden) tick(); }, 1000);

  toEnd(document);
  document.querySelector(".pages [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  connect();
})();
