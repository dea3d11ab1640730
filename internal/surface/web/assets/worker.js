// The one connection of a browser for events. All pages of the server share this worker, because a
// browser has few connections for one server. It tells them which kinds of events happened.
"use strict";
const ports = new Set();
let source = null;
let state = "connecting";
let last = ""; // number of the last event
let retry = 0; // number of failed attempts
let again = 0;

const tell = (message) => ports.forEach((port) => port.postMessage(message));

const connect = () => {
  clearTimeout(again);
  source?.close();
  source = new EventSource("/events?kinds=true" + (last ? "&after=" + encodeURIComponent(last) : "")); // without a number, only new events are sent
  source.onopen = () => {
    state = "open";
    retry = 0;
    tell({ state, last });
  };
  source.onerror = () => {
    state = "lost";
    tell({ state });
    if (source.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    clearTimeout(again);
    again = setTimeout(connect, Math.min(15000, 500 * 2 ** retry++));
  };
  const heard = (event) => {
    if (event.lastEventId) last = event.lastEventId;
    tell({ kinds: event.type === "kinds" ? JSON.parse(event.data) : ["gap"], last });
  };
  source.addEventListener("kinds", heard);
  source.addEventListener("gap", heard);
};

onconnect = ({ ports: [port] }) => {
  ports.add(port);
  port.onmessage = ({ data }) => {
    if (data.leave) {
      ports.delete(port);
      return;
    }
    if (!last) last = data.after;
    if (!source || source.readyState === EventSource.CLOSED) connect();
    port.postMessage({ state, last });
  };
};
