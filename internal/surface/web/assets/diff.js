// Shows diffs side by side or unified, with colors for the syntax, moves from change to change, and
// opens the form for a comment below its line. Without this script a diff is unified, and the form has a
// field for the line.
"use strict";
(() => {
  const wide = matchMedia("(min-width: 64rem)"); // two columns of code need this width
  const lines = 3000; // longest file that gets colors
  const known = 500;  // how many viewed files are remembered

  const recall = (name) => { try { return localStorage.getItem(name) ?? ""; } catch { return ""; } };
  const remember = (name, value) => { try { localStorage.setItem(name, value); } catch { /* the choice lasts as long as the page */ } };
  let split = recall("lockkeeper-diff") === "split";
  const viewed = new Set(recall("lockkeeper-viewed").split(" ").filter(Boolean));

  const files = () => [...document.querySelectorAll("details.file[data-path]")];
  const rowsOf = new WeakMap(); // the body of a table → its rows as the server sent them

  // --- colors ----------------------------------------------------------------------------

  const language = (path) => {
    const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
    const kind = name.slice(name.lastIndexOf(".") + 1);
    return globalThis.hljs?.getLanguage(kind) ? kind : "";
  };

  // Splits highlighted code into lines. A span that covers several lines is opened again on each.
  const linesOf = (html) => {
    const open = [];
    return html.split("\n").map((line) => {
      const before = open.join("");
      for (const [tag] of line.matchAll(/<span[^>]*>|<\/span>/g)) if (tag === "</span>") open.pop(); else open.push(tag);
      return before + line + "</span>".repeat(open.length);
    });
  };

  const color = (file, rows) => {
    const kind = language(file.dataset.path);
    if (!kind || rows.length > lines) return;
    for (const side of ["del", "add"]) {
      const mine = rows.filter((tr) => tr.matches(".line") && (tr.matches("." + side) || !tr.matches(".add, .del")));
      const code = mine.map((tr) => tr.lastElementChild.textContent);
      const colored = linesOf(hljs.highlight(code.join("\n"), { language: kind, ignoreIllegals: true }).value);
      mine.forEach((tr, i) => { if (side === "del" ? tr.matches(".del") : !tr.matches(".del")) tr.lastElementChild.innerHTML = colored[i] ?? ""; });
    }
  };

  // --- layout ----------------------------------------------------------------------------

  const cell = (kind, html) => {
    const td = document.createElement("td");
    td.className = kind;
    td.innerHTML = html; // copied from a cell of this table
    return td;
  };

  const pair = (left, right) => {
    const tr = document.createElement("tr");
    tr.className = "line pair" + (left === right ? "" : " change");
    for (const [row, at, kind] of [[left, 0, "del"], [right, 1, "add"]]) {
      const tone = row && left !== right ? " " + kind : row ? "" : " none";
      tr.append(cell("at" + tone, row ? row.children[at].innerHTML : ""), cell("code" + tone, row ? row.lastElementChild.innerHTML : ""));
    }
    return tr;
  };

  const sideBySide = (rows) => {
    const list = [];
    let dels = [], adds = [], after = [];
    const flush = () => {
      for (let i = 0; i < Math.max(dels.length, adds.length); i++) list.push(pair(dels[i], adds[i]));
      list.push(...after);
      dels = []; adds = []; after = [];
    };
    for (const tr of rows) {
      if (tr.matches(".del")) { if (adds.length) flush(); dels.push(tr); }
      else if (tr.matches(".add")) adds.push(tr);
      else if (!tr.matches(".line, .hunk") && dels.length + adds.length) after.push(tr); // a comment on a changed line
      else { flush(); list.push(tr.matches(".line") ? pair(tr, tr) : tr); }
    }
    flush();
    return list;
  };

  const show = (file) => {
    const body = file.querySelector(".diff tbody");
    if (!body) return;
    if (!rowsOf.has(body)) {
      const rows = [...body.children];
      rowsOf.set(body, rows);
      color(file, rows);
    }
    const both = split && wide.matches;
    if (body.dataset.layout === (both ? "split" : "unified")) return;
    body.dataset.layout = both ? "split" : "unified";
    body.replaceChildren(...(both ? sideBySide(rowsOf.get(body)) : rowsOf.get(body)));
    body.closest("table").classList.toggle("split", both);
  };

  const boxOf = (file) => file?.parentNode.querySelector("[data-viewed]");
  const mark = (file) => {
    const box = boxOf(file);
    if (box) box.checked = viewed.has(box.dataset.viewed);
  };

  const showAll = () => {
    for (const file of files()) {
      if (file.dataset.shown) { if (file.open) show(file); continue; }
      file.dataset.shown = "1";
      mark(file);
      if (boxOf(file)?.checked) file.open = false;
      if (file.open) show(file);
    }
    for (const b of document.querySelectorAll("[data-diff=layout]")) b.setAttribute("aria-pressed", String(split));
  };

  // --- movement --------------------------------------------------------------------------

  const step = (list, by, isHere) => {
    if (!list.length) return null;
    const at = list.findIndex(isHere);
    return list[at < 0 ? (by > 0 ? 0 : list.length - 1) : Math.min(list.length - 1, Math.max(0, at + by))];
  };
  // The keys and buttons of the bar take the focus, so what had it before is remembered.
  let place = null;
  document.addEventListener("focusin", (event) => {
    if (!event.target.closest("[data-diff]")) place = event.target;
  });
  const focused = (selector) => place?.isConnected ? place.closest(selector) : null;
  const here = () => focused("details.file[data-path]");

  const toFile = (by) => {
    const file = step(files(), by, (f) => f === here());
    if (!file) return;
    file.querySelector("summary").focus({ preventScroll: true });
    file.scrollIntoView({ block: "start" });
  };

  // The first row of each group of changed rows.
  const changes = () => files().filter((f) => f.open).flatMap((f) => [...f.querySelectorAll(".diff tr")]
    .filter((tr) => tr.matches(".add, .del, .change") && !tr.previousElementSibling?.matches(".add, .del, .change")));

  const toChange = (by) => {
    const list = changes();
    const now = focused(".diff tr");
    const row = step(list, by, (tr) => tr === now);
    if (!row) return;
    row.tabIndex = -1;
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "center" });
  };

  // --- comments --------------------------------------------------------------------------

  const comment = (row, old) => {
    const file = row?.closest("details.file");
    const form = file?.querySelector("details.comment-new");
    if (!form) return;
    const cells = [...row.querySelectorAll("td.at")];
    const numbers = cells.map((td) => td.textContent.trim());
    const fromOld = old ?? !numbers[1];
    const line = numbers[fromOld ? 0 : 1];
    if (!line) return;
    const under = document.createElement("tr");
    under.className = "said-on new";
    const td = document.createElement("td");
    td.colSpan = 4;
    const last = form.closest("tr.said-on.new");
    td.append(form);
    under.append(td);
    last?.remove();
    row.after(under);
    seen.takeRecords();
    form.open = true;
    form.querySelector("[name=line]").value = line;
    form.querySelector("[name=old]").checked = fromOld;
    form.querySelector("[name=text]").focus();
  };

  document.addEventListener("click", (event) => {
    const number = event.target.closest(".file[data-comments] .diff td.at");
    if (number && number.textContent.trim()) comment(number.parentNode, number.parentNode.querySelector("td.at") === number);
    const act = event.target.closest("[data-diff]")?.dataset.diff;
    if (!act) return;
    if (act === "layout") { split = !split; remember("lockkeeper-diff", split ? "split" : "unified"); update(); }
    if (act === "next-file" || act === "previous-file") toFile(act === "next-file" ? 1 : -1);
    if (act === "next" || act === "previous") toChange(act === "next" ? 1 : -1);
    if (act === "viewed") boxOf(here() ?? files().find((f) => f.open))?.click();
    if (act === "comment") comment(focused(".diff tr"));
  });

  document.addEventListener("change", (event) => {
    const box = event.target.closest("[data-viewed]");
    if (!box) return;
    if (box.checked) viewed.add(box.dataset.viewed); else viewed.delete(box.dataset.viewed);
    remember("lockkeeper-viewed", [...viewed].slice(-known).join(" "));
    const file = box.closest(".filebox").querySelector("details.file");
    file.open = !box.checked;
    if (box.checked) toFile(1);
  });
  document.addEventListener("toggle", (event) => { if (event.target.matches?.("details.file[data-path]") && event.target.open) update(); }, true);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-file]");
    const file = link && document.getElementById(link.getAttribute("href").slice(1));
    if (file) file.open = true;
  });
  wide.addEventListener("change", () => update());

  // When the page is brought up to date, the rows of a diff are as the server sends them.
  const page = document.getElementById("page");
  const seen = new MutationObserver((records) => {
    for (const { target } of records) {
      const body = target.closest?.(".diff tbody");
      if (!body || !rowsOf.has(body)) continue;
      rowsOf.delete(body);
      delete body.dataset.layout;
    }
    update();
  });
  const update = () => { showAll(); seen.takeRecords(); }; // our own changes are none of the server
  seen.observe(page, { childList: true, subtree: true });
  update();
})();
