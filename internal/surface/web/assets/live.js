// Keeps the page current. The server says which kinds of events happened. Each part of the page
// names its topics in data-live. When one of them changes, the part asks what changed in it. The
// more that costs the server, the network and this page, the less often the page asks.
"use strict";
(() => {
  const calm = 400;      // minimum time between two requests of the page, in milliseconds
  const patient = 6000;  // maximum of that time while events arrive
  const slow = 15000;    // interval of requests without an event: some changes have none
  const patience = 2000; // how long the connection may be lost before the banner says so
  const bytes = 14;      // the most that the page receives, per millisecond
  const share = 0.04;    // of the time of a processor, for the page and the server together

  const meta = (name) => document.querySelector(`meta[name="lockkeeper-${name}"]`)?.content ?? "";
  const topics = JSON.parse(meta("topics") || "{}"); // kind of event → topics
  const ahead = Date.parse(meta("now")) - Date.now(); // how far the server's clock is ahead of ours
  const page = document.getElementById("page");
  const { parts: shown, apply, replace, sweep, toEnd } = Lockkeeper; // shown: id of a part → hash of what it shows
  shown.set(page.id, page.dataset.hash);

  // --- parts -------------------------------------------------------------------------

  const parts = () => [...document.querySelectorAll("[data-live]")];
  const looks = new Map(); // id of a part → { at: time of its last request, timer: of its next one }
  const loaded = Date.now();
  let rests = 0; // until when the page asks nothing by itself
  let missed = false; // something changed while the page was hidden
  let arriving = false; // the person followed a link: show the new content from its beginning
  const changed = () => document.getElementById("changed");
  const here = () => location.pathname + location.search;

  // Asks what changed in a part. With force, the person waits for the answer.
  const look = async (part, force) => {
    if (document.hidden) { missed = true; return; }
    if (!force && Lockkeeper.acting) return; // after the response to the form, the page asks for every part
    const mine = looks.get(part.id) ?? {};
    clearTimeout(mine.timer);
    mine.cancel?.abort();
    const cancel = new AbortController();
    looks.set(part.id, { at: Date.now(), cancel });
    const address = part.dataset.from || here();
    const isArrival = arriving && !part.dataset.from;
    const known = isArrival ? "" : shown.get(part.id);
    try {
      const response = await fetch(address, { headers: { "Lockkeeper-Part": known || "-" }, signal: cancel.signal });
      const reply = await read(response);
      if (looks.get(part.id)?.cancel === cancel) looks.set(part.id, { at: Date.now() });
      if (!part.isConnected || !part.dataset.from && address !== here()) return; // the person has left
      if (reply) show(part, reply, { force, isArrival, response });
    } catch (err) {
      if (err.name !== "AbortError") isLost();
    } finally {
      if (isArrival && !cancel.signal.aborted) arriving = false;
      showBusy();
    }
  };

  // Reads an answer, or says why there is none.
  const read = async (response) => {
    const isOurs = response.headers.get("Content-Type")?.startsWith("application/json");
    const reply = isOurs ? await response.json() : null;
    if (reply?.hash) return reply;
    Lockkeeper.say(response.status === 401 ? Lockkeeper.signedOut : reply?.error ? reply.error.message + (reply.error.next ? ". Next: " + reply.error.next : "") : `The server answered ${response.status}.`);
    return null;
  };

  const show = (part, reply, { force, isArrival, response }) => {
    const began = performance.now();
    if (isArrival) {
      if (reply.html !== undefined) replace(part, reply.html);
      if (part === page) shown.clear(); // the parts in it are new
      begin(part);
    } else {
      const done = apply(part, reply, force);
      if (done === false) { changed().hidden = false; return; }
      if (done === null) { shown.delete(part.id); soon(part); return; }
    }
    shown.set(part.id, reply.hash);
    if (part === page) frame(reply);
    tick();
    page.getBoundingClientRect(); // lays out the page, which is part of the cost
    spend(response, performance.now() - began);
  };

  // Shows what is outside of the part: the title, the heading and the number of open decisions.
  const frame = ({ title, heading, needs }) => {
    changed().hidden = true;
    if (title && document.title !== title) document.title = title;
    const h = document.getElementById("heading");
    if (heading !== undefined && h.textContent !== heading) h.textContent = heading;
    const count = document.getElementById("needs");
    if (needs === undefined || parseInt(count.textContent, 10) === needs) return;
    const waiting = document.createElement("span");
    waiting.className = "sr";
    waiting.textContent = " waiting";
    count.replaceChildren(String(needs), waiting);
    count.classList.toggle("none", needs === 0);
  };

  // Shows a part from its beginning.
  const begin = (part) => {
    part.querySelector("[data-focus]")?.focus({ preventScroll: true });
    part.querySelector("[data-list] [aria-current]")?.scrollIntoView({ block: "nearest" });
    if (part.querySelector("[data-top]")) scrollTo(0, 0);
  };

  // Lets the page rest as long as its share of the network and the processors needs.
  const spend = (response, here) => {
    const there = parseFloat(/dur=([\d.]+)/.exec(response.headers.get("Server-Timing") ?? "")?.[1]) || 0;
    const size = Number(response.headers.get("Content-Length")) || 0;
    const now = Date.now();
    rests = Math.min(now + patient, Math.max(rests, now) + Math.max((size + 600) / bytes, (here + there) / share));
  };

  const soon = (part) => {
    const mine = looks.get(part.id) ?? { at: 0 };
    if (mine.timer) return;
    const wait = Math.max(20, mine.at + calm - Date.now(), rests - Date.now());
    const timer = setTimeout(() => {
      looks.set(part.id, { ...looks.get(part.id), timer: 0 });
      const still = document.getElementById(part.id);
      if (!still) return;
      if (rests > Date.now() + calm) soon(still); else look(still, false);
    }, wait);
    looks.set(part.id, { ...mine, timer });
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
    sweep();
    for (const part of parts()) {
      const every = Number(part.dataset.every) || slow;
      if (Date.now() - (looks.get(part.id)?.at ?? loaded) >= every) soon(part);
    }
  }, 1000);

  // --- the connection ----------------------------------------------------------------

  let seen = Number(meta("seq")); // number of the last event that the page reflects
  let lostAt = 0;
  let telling = 0;

  const clock = (ms) => new Date(ms + ahead).toLocaleTimeString([], { hour12: false });

  const status = (state, text) => {
    const line = document.getElementById("live");
    line.dataset.state = state;
    line.textContent = text;
  };

  const isBack = () => {
    clearTimeout(telling);
    status("live", "live");
    document.getElementById("lost").hidden = true;
    if (lostAt) touchAll();
    lostAt = 0;
  };

  const isLost = () => {
    if (lostAt) return;
    lostAt = Date.now();
    telling = setTimeout(() => {
      status("lost", "not connected");
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
  };

  Lockkeeper.follow({
    worker: meta("worker"), after: meta("seq"),
    told: ({ state, kinds, last }) => {
      if (state === "open") isBack();
      if (state === "lost") isLost();
      if (state === "paused") { missed = true; status("", "paused"); }
      if (kinds) touch(kinds.flatMap((kind) => (topics[kind] ?? Object.values(topics).join(" ")).split(" ")));
      else if (Number(last) > seen) touchAll(); // other pages of the browser have heard these events already
      if (last) seen = Number(last);
    },
  });

  document.addEventListener("visibilitychange", () => {
    if (document.hidden || !missed) return;
    missed = false;
    touchAll();
  });

  // --- navigation within a page ---------------------------------------------------------

  const go = (url) => {
    history.pushState(null, "", url);
    lookAtAll(true);
  };
  addEventListener("popstate", () => lookAtAll(true));

  document.addEventListener("click", (event) => {
    if (event.target.closest("#changed")) { lookAtAll(); return; }
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

  // While a response or the next page is loading, keys send no answer: the person has not yet
  // seen the decision that the key would answer.
  const showBusy = () => document.body.classList.toggle("busy", !!Lockkeeper.acting || arriving);
  Object.assign(Lockkeeper, { go, lookAtAll, touchAll, showBusy });

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
})();
