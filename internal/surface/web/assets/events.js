// Follows the events of the server: through the worker that all pages of the browser share or, if
// the browser has no such workers, with an own connection while the page is visible.
"use strict";
Lockkeeper.follow = ({ worker, after, told }) => {
  const aside = 10000; // how long a hidden page keeps its own connection, in milliseconds
  let port = null;
  let source = null;
  let last = after;
  let retry = 0;
  let again = 0;
  let leaving = 0;

  const alone = () => {
    clearTimeout(again);
    source?.close();
    source = new EventSource("/events?kinds=true" + (last ? "&after=" + encodeURIComponent(last) : ""));
    source.onopen = () => { retry = 0; told({ state: "open", last }); };
    source.onerror = () => {
      told({ state: "lost" });
      if (source?.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
      clearTimeout(again);
      again = setTimeout(alone, Math.min(15000, 500 * 2 ** retry++));
    };
    const heard = (event) => {
      if (event.lastEventId) last = event.lastEventId;
      told({ kinds: event.type === "kinds" ? JSON.parse(event.data) : ["gap"], last });
    };
    source.addEventListener("kinds", heard);
    source.addEventListener("gap", heard);
  };

  const start = () => {
    if (!window.SharedWorker) { alone(); return; }
    const shared = new SharedWorker(worker);
    shared.onerror = () => { port = null; alone(); };
    port = shared.port;
    port.onmessage = ({ data }) => {
      if (data.last) last = data.last;
      told(data);
    };
    port.postMessage({ after: last });
  };
  const stop = () => {
    clearTimeout(again);
    source?.close();
    source = null;
    port?.postMessage({ leave: true });
    port?.close();
    port = null;
  };

  document.addEventListener("visibilitychange", () => {
    clearTimeout(leaving);
    if (port) return;
    if (document.hidden) leaving = setTimeout(() => { stop(); told({ state: "paused" }); }, aside);
    else if (!source) start();
  });
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (event) => { if (event.persisted) { start(); told({ kinds: ["gap"], last }); } });
  start();
};
