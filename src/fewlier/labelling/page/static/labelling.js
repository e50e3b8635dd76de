// Labelling, one row at a time, by keys. The page of `fewlier label` and the notebook widget share
// this module; they differ in how `ask(action, body)` reaches the session, at the end of the file.
// What comes from the user's table is only ever text: no markup is made from strings.

const KEYS = [
  ["a", "anomaly"],
  ["n", "normal"],
  ["space", "skip this row"],
  ["backspace", "undo the last answer"],
  ["1 – 9", "anomaly of this kind; a new number asks for a name"],
  ["e", "write a note for this row"],
  ["r", "to the ranking and back"],
  ["escape", "leave a field, or go back to the question"],
  ["?", "these keys"],
];
const WORDS = new Map([[1, "anomaly"], [0, "normal"], [null, "skipped"]]);
const MARKS = new Map([[1, "is-anomaly"], [0, "is-normal"], [null, "is-skipped"]]);
const MOST_CELLS = 12; // columns that are shown at first
const LONG = 160; // characters of a cell that are shown at first
const PAGE = 50; // rows of the ranking that are fetched at a time
const MOST = 500; // and in all

/** Make an element; `on…` attributes listen, strings among the children become text. */
function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child != null));
  return node;
}

const count = (number) => number.toLocaleString("en");
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
const told = (number, digits = 2) => number.toFixed(digits).replace("-", "−");
const chance = (p) => (p == null ? "–" : p >= 0.1 ? p.toFixed(2) : p.toPrecision(2));
const joined = (words) => words.replace(/ (?=\(|%)/g, "\u00a0"); // a share stays with its category
const percent = (share) => `${(Math.floor(share * 1000) / 10).toFixed(1)}\u00a0%`; // never 100 before it is
const name = (answer, kind) => (answer === 1 && kind ? kind : WORDS.get(answer));

/** Text that may be broken over lines between the words of a name, and after 24 letters of one. */
const breakable = (words) => words.split(/(?<=[_/.])(?=\p{L})|(?<=[\p{L}\p{N}_]{24})(?=[\p{L}\p{N}_])/u).flatMap((part, i) => (i ? [make("wbr"), part] : [part]));

/** Text of the user, cut where it is long, with a button that shows all of it. */
function text(value) {
  if (value == null) return make("span", { class: "gap" }, "missing");
  const shown = make("bdi", {}, breakable(value.length > LONG ? `${value.slice(0, LONG - 1)}…` : value));
  if (value.length <= LONG) return shown;
  const more = make("button", { type: "button", class: "plain", onclick: () => {
    shown.textContent = value;
    more.remove();
  } }, "show all");
  return make("span", {}, shown, " ", more);
}

/** Where a score lies among all: their histogram, and a mark. */
function strip(scores, score) {
  const width = 300, height = 32, bar = width / scores.counts.length;
  const top = Math.sqrt(Math.max(...scores.counts, 1)); // square roots: the few odd rows count
  const steps = scores.counts.map((n) => `V${(height * (1 - Math.sqrt(n) / top)).toFixed(1)}h${bar}`);
  const share = (score - scores.low) / Math.max(scores.high - scores.low, 1e-9);
  const x = width * Math.min(Math.max(share, 0), 1);
  return draw("svg", { class: "strip", viewBox: `-2 -4 ${width + 4} ${height + 4}`, preserveAspectRatio: "none",
    role: "img", "aria-label": "Histogram of the scores of all rows, with a mark at this row." },
  draw("path", { class: "all", d: `M0 ${height}${steps.join("")}V${height}z` }),
  draw("path", { class: "mark", d: `M${x.toFixed(1)} -4V${height}` }));
}

/** Anomalies found against answers given. */
function curve(found) {
  const width = 240, height = 88, n = Math.max(found.length - 1, 10), most = Math.max(found.at(-1) ?? 0, 4);
  const x = (i) => ((width * i) / n).toFixed(1), y = (k) => (height - (height * k) / most).toFixed(1);
  const line = found.map((k, i) => (i ? `H${x(i)}V${y(k)}` : `M0 ${y(k)}`)).join("");
  return draw("svg", { class: "curve", viewBox: `-2 -4 ${width + 8} ${height + 8}`, role: "img",
    "aria-label": `Curve of finds: ${found.at(-1) ?? 0} anomalies after ${found.length - 1} answers.` },
  draw("path", { class: "axis", d: `M0 0V${height}H${width}` }),
  draw("path", { class: "every", d: `M0 ${height}L${x(Math.min(n, most))} ${y(Math.min(n, most))}` }),
  found.length > 1 ? draw("path", { class: "area", d: `${line}V${height}H0z` }) : null,
  draw("path", { class: "line", d: line }),
  draw("circle", { cx: x(found.length - 1), cy: y(found.at(-1) ?? 0), r: 3.5 }));
}

let instances = 0;

/**
 * Put the page into `root` and keep it there. `ask` takes the name of an action and its details and
 * promises the reply; `keys` is what listens to the keyboard. Returns a function that lets go.
 */
export function mount(root, ask, keys = root) {
  const id = (part) => `fewlier-${number}-${part}`;
  const number = instances++;
  let state = null; // what the session last said
  let looking = null; // an answered row that is looked at again, or null: the question
  let ranking = null; // the rows of the ranking, or null: one row at a time
  let chosen = new Set(); // rows of the ranking
  let isBusy = false;
  let showsAll = false;

  const page = {
    head: make("header"),
    main: make("main", { "aria-busy": "true" }, make("p", { class: "quiet" }, "Reading …")),
    side: make("aside", { "aria-label": "Progress and answers" }),
    said: make("p", { class: "said", role: "status", "aria-live": "polite" }),
    alert: make("div", { class: "alert", role: "alert", hidden: true }),
    help: make("dialog", { class: "help", "aria-labelledby": id("help") },
      make("h2", { id: id("help") }, "Keys"),
      make("dl", {}, KEYS.map(([key, does]) => make("div", {},
        make("dt", {}, key.split(" – ").flatMap((k, i) => [i ? " – " : null, make("kbd", {}, k)])), make("dd", {}, does)))),
      make("form", { method: "dialog" }, make("button", { autofocus: true }, "Close"))),
  };
  root.classList.add("fewlier-label");
  root.replaceChildren(page.head, page.alert, make("div", { class: "columns" }, page.main, page.side), page.help);

  // Talking to the session ------------------------------------------------------------------------

  /** Ask, take over the state that comes back, and return the reply, or null if it was refused. */
  async function tell(action, body = {}) {
    if (isBusy) return null;
    isBusy = true;
    page.main.setAttribute("aria-busy", "true");
    let reply;
    try {
      reply = await ask(action, { turn: state?.turn, ...body });
    } catch (problem) {
      reply = { error: problem.message, retry: true };
    } finally {
      isBusy = false;
      page.main.setAttribute("aria-busy", "false");
    }
    if (reply.state) state = reply.state;
    warn(reply.error, reply.retry);
    return reply.error && !reply.state ? null : reply;
  }

  function warn(message, canRetry) {
    page.alert.hidden = !message;
    page.alert.replaceChildren(...(message ? [make("p", {}, message)] : []),
      ...(canRetry ? [make("button", { type: "button", onclick: refresh }, "Try again")] : []));
  }

  async function refresh() {
    const reply = await tell("state");
    if (!reply) return;
    looking = null;
    if (ranking) await openRanking(ranking.length);
    else show();
  }

  async function answer(value, kind = null) {
    if (ranking) return answerChosen(value, kind);
    const card = looking ?? state?.question;
    if (!card) return say("There is no row to answer.");
    const note = root.querySelector(`#${id("note")}`)?.value.trim() || null;
    const reply = await tell("answer", { row: card.row, answer: value, kind, note });
    if (!reply) return;
    looking = null;
    show(reply.error ? "" : `Row ${count(card.row)}: ${name(value, kind)}.`);
  }

  async function answerChosen(value, kind) {
    const rows = ranking.map((line) => line.row).filter((row) => chosen.has(row));
    if (!rows.length) return say("Choose rows first.");
    const reply = await tell("answers", { rows, answer: value, kind });
    if (!reply) return;
    await openRanking(ranking.length);
    if (!reply.error) say(`${plural(rows.length, "row")}: ${name(value, kind)}.`);
  }

  async function undo() {
    const reply = await tell("undo");
    if (!reply) return;
    looking = reply.card ?? null;
    if (ranking) await openRanking(ranking.length);
    else show();
    if (!reply.error) say(reply.card ? `Undone: row ${count(reply.card.row)} is open again.` : "Undone.");
  }

  async function look(row) {
    const reply = await tell("look", { row });
    if (!reply?.card) return;
    [looking, ranking] = [reply.card, null];
    show();
  }

  async function openRanking(n = PAGE) {
    const reply = await tell("ranking", { n });
    if (!reply?.ranking) return;
    if (!ranking) chosen = new Set();
    ranking = reply.ranking;
    const open = new Set(ranking.map((line) => line.row));
    chosen = new Set([...chosen].filter((row) => open.has(row)));
    show();
  }

  function closeRanking() {
    [ranking, looking] = [null, null];
    show();
  }

  async function download() {
    const reply = await tell("labels");
    if (!reply?.file) return;
    const url = URL.createObjectURL(new Blob([reply.file.text], { type: "text/csv" }));
    const link = make("a", { href: url, download: reply.file.name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
    say(reply.said);
  }

  async function save() {
    say("Fitting with all labels …");
    const reply = await tell("save");
    say(reply?.said ?? "");
  }

  function say(words) {
    page.said.textContent = words;
  }

  // Showing ---------------------------------------------------------------------------------------

  function show(words = "") {
    showHead();
    page.main.replaceChildren(...(ranking ? rankingView() : questionView()));
    page.side.replaceChildren(...progressView(), ...recentView());
    say(words);
    page.main.querySelector("h2")?.focus({ preventScroll: true });
    if (keys === document) {
      document.title = `${state.found} found – ${state.name} – fewlier`;
      scrollTo({ top: 0 });
    }
  }

  function showHead() {
    const tab = (label, isOpen, open) => make("button", { type: "button", "aria-current": isOpen ? "page" : null, onclick: open }, label);
    page.head.replaceChildren(
      make("h1", {}, make("span", { class: "mark" }, "fewlier"), make("bdi", {}, state.name)),
      make("nav", { "aria-label": "Views" }, tab("One row", !ranking, closeRanking), tab("Ranking", !!ranking, () => openRanking())),
      make("div", { class: "tools" },
        make("button", { type: "button", onclick: download }, "Download labels"),
        make("button", { type: "button", onclick: save }, "Save model"),
        make("button", { type: "button", "aria-label": "Keys", title: "Keys (?)", onclick: () => page.help.showModal() }, "?")),
    );
  }

  function questionView() {
    const card = looking ?? state.question;
    if (!card) {
      return [make("section", { class: "card" }, make("h2", { tabindex: "-1" }, "Nothing left to ask"),
        make("p", {}, "Every row that could be asked about has an answer. Download the labels, or save the model.")), actions(null)];
    }
    return [
      make("section", { class: "card", "aria-labelledby": id("row") },
        make("div", { class: "title" },
          make("div", {},
            make("h2", { id: id("row"), tabindex: "-1" }, `Row ${count(card.row)}`),
            make("p", { class: "quiet" }, looking ? lookingWords(card) : card.why)),
          make("div", { class: "where" }, strip(state.scores, card.score),
            make("p", { class: "ends quiet" }, make("span", {}, told(state.scores.low, 1)),
              make("span", {}, `scores of ${plural(state.rows, "row")}`), make("span", {}, told(state.scores.high, 1)))),
          make("dl", { class: "figures" },
            figure("score", told(card.score)),
            card.p_value == null ? null : figure("p-value", chance(card.p_value)),
            figure("odder than", percent(card.place)))),
        cells(card)),
      actions(card),
    ];
  }

  function lookingWords(card) {
    const answered = card.answer ? `Answered: ${name(card.answer.answer, card.answer.kind)}. A new answer replaces it. ` : "Not answered. ";
    return [answered, make("button", { type: "button", class: "plain", onclick: closeRanking }, "Back to the question")];
  }

  const figure = (label, value) => make("div", {}, make("dt", {}, label), make("dd", {}, value));

  /** The cells of a row beside what was expected, and beside the rows most like it. */
  function cells(card) {
    const lines = showsAll ? card.cells : card.cells.slice(0, MOST_CELLS);
    const largest = Math.max(...card.cells.map((cell) => Math.abs(cell.adds ?? 0)), 1e-9);
    const beside = [["normal", "nearest normal"], ["anomaly", "nearest anomaly"]].filter(([key]) => key in card.beside);
    const titles = [["column", ""], ["adds", "adds"], ["value", "this row"], ["expected", "expected"]];
    const table = make("table", { class: "cells", role: "table" },
      make("caption", { class: "hidden" }, "Cells of the row, those that add most to its score first"),
      make("thead", {}, make("tr", {}, titles.map(([key, title]) => make("th", { scope: "col", class: key }, title || make("span", { class: "hidden" }, "column"))),
        beside.map(([key, title]) => make("th", { scope: "col", class: key }, title, make("small", {}, `row ${count(card.beside[key])}`))))),
      make("tbody", {}, lines.map((cell) => make("tr", { class: cell.adds == null ? "unscored" : null },
        make("th", { scope: "row" }, make("bdi", {}, breakable(cell.column)), cell.adds == null ? make("small", {}, "not scored") : null),
        make("td", { class: "adds" }, cell.adds == null ? null : [bar(cell.adds / largest), make("span", {}, sign(cell.adds))]),
        make("td", { class: "value" }, text(cell.value)),
        make("td", { class: "expected", "data-name": "expected" }, cell.expected ? text(joined(cell.expected)) : null),
        beside.map(([key, title]) => make("td", { class: key, "data-name": title }, text(cell[key])))))));
    const rest = card.cells.length - lines.length;
    const more = rest > 0 ? make("button", { type: "button", onclick: () => { showsAll = true; show(); } }, `Show ${plural(rest, "more column")}`) : null;
    return make("div", { class: "scroll" }, table, more);
  }

  const sign = (value) => `${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(1)}`;

  function bar(share) {
    const width = Math.max(Math.abs(share) * 100, 0.5);
    return draw("svg", { class: `bar ${share < 0 ? "less" : "more"}`, viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
      draw("rect", { width, height: 8 }));
  }

  function actions(card) {
    const note = make("input", { id: id("note"), type: "text", maxlength: 2000, autocomplete: "off", placeholder: "a note for this row", value: card?.answer?.note });
    note.addEventListener("keydown", (event) => { if (event.key === "Enter") leave(); });
    return make("section", { class: "actions", "aria-label": "Answer" },
      card ? make("div", { class: "details" }, kinds(), make("label", { class: "note" }, make("span", {}, "Note ", make("kbd", { "aria-hidden": "true" }, "e")), note)) : null,
      buttons(!card));
  }

  function buttons(isOver = false) {
    const skips = ranking ? [null, null] : ["Space", "space"]; // where it chooses a row
    const kinds = [["Anomaly", "is-anomaly", "a", "a", () => answer(1)], ["Normal", "is-normal", "n", "n", () => answer(0)],
      ["Skip", "is-skipped", ...skips, () => answer(null)], ["Undo", "undo", "Backspace", "⌫", undo]];
    return make("div", { class: "press" }, make("div", { class: "buttons" }, kinds.map(([label, mark, key, cap, does]) =>
      make("button", { type: "button", class: `answer ${mark}`, "aria-keyshortcuts": key, onclick: does, disabled: isOver && does !== undo },
        make("span", {}, label), cap ? make("kbd", { "aria-hidden": "true" }, cap) : null))), page.said);
  }

  /** The kinds of anomaly by number, and a field for the name of the next. */
  function kinds() {
    const chips = state.kinds.slice(0, 9).map((kind, i) => make("button", { type: "button", class: "chip", "aria-keyshortcuts": `${i + 1}`, onclick: () => answer(1, kind.name) },
      make("kbd", { "aria-hidden": "true" }, `${i + 1}`), make("bdi", {}, kind.name), make("small", {}, count(kind.n))));
    const next = state.kinds.length + 1;
    if (next <= 9) chips.push(make("button", { type: "button", class: "chip new", "aria-keyshortcuts": `${next}`, onclick: nameKind }, make("kbd", { "aria-hidden": "true" }, `${next}`), "new kind"));
    return make("div", { class: "kinds", role: "group", "aria-label": "Anomaly of a kind" }, chips);
  }

  function nameKind() {
    const chip = root.querySelector(".chip.new");
    if (!chip) return;
    const field = make("input", { type: "text", class: "chip", maxlength: 60, autocomplete: "off", "aria-label": "Name of the new kind", placeholder: "name, then Enter" });
    field.addEventListener("keydown", (event) => {
      const kind = field.value.trim();
      if (event.key === "Enter" && kind) answer(1, kind);
    });
    field.addEventListener("blur", () => field.replaceWith(chip));
    chip.replaceWith(field);
    field.focus();
  }

  function progressView() {
    const { answered, found, skipped, left } = state;
    const parts = [make("h2", {}, "Found"),
      make("p", { class: "found" }, make("strong", {}, count(found)), ` of ${plural(answered, "answer")}`, skipped ? make("span", { class: "quiet" }, `, ${count(skipped)} skipped`) : null),
      curve(state.curve)];
    if (left) {
      parts.push(make("p", { class: "left" }, "About ", make("strong", {}, count(left[0])), " left to find",
        make("span", { class: "quiet" }, ` (${count(left[1])} to ${count(left[2])})`)));
    }
    if (state.told) parts.push(make("p", { class: "quiet small" }, state.told));
    return [make("section", { class: "progress" }, parts)];
  }

  function recentView() {
    if (!state.recent.length) return [];
    return [make("section", { class: "recent" }, make("h2", {}, "Last answers"),
      make("ol", {}, state.recent.map((one) => make("li", {},
        make("button", { type: "button", onclick: () => look(one.row), "aria-label": `Change row ${one.row}: ${name(one.answer, one.kind)}` },
          make("span", { class: `dot ${MARKS.get(one.answer)}` }), make("span", { class: "what" }, make("bdi", {}, name(one.answer, one.kind)), one.note ? make("small", {}, make("bdi", {}, one.note)) : null),
          make("span", { class: "quiet" }, `row ${count(one.row)}`))))))];
  }

  function rankingView() {
    const all = make("input", { type: "checkbox", "aria-label": "Choose all rows", onchange: () => {
      chosen = new Set(all.checked ? ranking.map((line) => line.row) : []);
      for (const box of root.querySelectorAll(".ranking tbody input")) box.checked = all.checked;
      tally();
    } });
    let last = null;
    const line = (one, i) => {
      const box = make("input", { type: "checkbox", checked: chosen.has(one.row), "aria-label": `Choose row ${one.row}`, onclick: (event) => {
        const boxes = [...root.querySelectorAll(".ranking tbody input")];
        const [from, to] = event.shiftKey && last != null ? [Math.min(last, i), Math.max(last, i)] : [i, i];
        for (let k = from; k <= to; k++) {
          boxes[k].checked = box.checked;
          chosen[box.checked ? "add" : "delete"](ranking[k].row);
        }
        last = i;
        tally();
      } });
      return make("tr", {}, make("td", { class: "choose" }, box),
        make("td", { class: "row" }, make("button", { type: "button", class: "plain", onclick: () => look(one.row), "aria-label": `Look at row ${one.row}` }, count(one.row))),
        make("td", { class: "number" }, told(one.score)),
        make("td", { class: "number p" }, chance(one.p_value)),
        make("td", { class: "given" }, one.answer ? make("span", { class: `tag ${MARKS.get(one.answer.answer)}` }, make("bdi", {}, name(one.answer.answer, one.answer.kind))) : null),
        make("td", { class: "why" }, make("ul", {}, one.reasons.map((reason) => make("li", {}, make("bdi", {}, joined(reason)))))));
    };
    const heads = [["row", "row"], ["score", "number"], ["p-value", "number p"], ["answer", "given"], ["what adds most", "why"]];
    const table = make("table", { class: "ranking", role: "table" },
      make("thead", {}, make("tr", {}, make("th", { class: "choose" }, all), heads.map(([title, key]) => make("th", { scope: "col", class: key }, title)))),
      make("tbody", {}, ranking.map(line)));
    const more = ranking.length < Math.min(state.rows, MOST) ? make("button", { type: "button", onclick: () => openRanking(Math.min(ranking.length + PAGE, MOST)) }, "Show more rows") : null;
    setTimeout(tally);
    return [
      make("section", { class: "card" }, make("div", { class: "title" }, make("h2", { tabindex: "-1" }, "The oddest rows"),
        make("p", { class: "quiet" }, "Choose rows, also with shift, and answer them together.")), table, more),
      make("section", { class: "actions", "aria-label": "Answer the chosen rows" },
        make("div", { class: "details" }, make("p", { class: "chosen" }), kinds()),
        buttons()),
    ];
  }

  function tally() {
    const place = root.querySelector(".chosen");
    if (place) place.textContent = chosen.size ? `${plural(chosen.size, "row")} chosen` : "No row chosen";
  }

  // Keys ------------------------------------------------------------------------------------------

  /** Leave a field: its text stays, and the keys answer again. */
  function leave() {
    (page.main.querySelector("h2") ?? root).focus({ preventScroll: true });
  }

  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || page.help.open || !state) return;
    const target = event.composedPath()[0];
    if (target.matches?.("input:not([type=checkbox]), textarea, select")) {
      if (event.key === "Escape") leave();
      return;
    }
    if (event.key === " " && target.matches?.("button, input, summary")) return; // it presses those
    const does = action(event.key);
    if (!does) return;
    event.preventDefault();
    if (!event.repeat) does(); // a key that is held down answers once
  }

  function action(key) {
    if (/^[1-9]$/.test(key)) {
      const kind = state.kinds[Number(key) - 1];
      return kind ? () => answer(1, kind.name) : nameKind;
    }
    const actions = {
      a: () => answer(1), n: () => answer(0), " ": ranking ? null : () => answer(null), Backspace: undo,
      e: () => root.querySelector(`#${id("note")}`)?.focus(), r: () => (ranking ? closeRanking() : openRanking()),
      Escape: looking || ranking ? closeRanking : null, "?": () => page.help.showModal(),
    };
    return actions[key] ?? actions[key.toLowerCase()];
  }

  /** Another tab may have answered meanwhile. */
  async function lookAgain() {
    if (document.visibilityState !== "visible" || isBusy || !state || root.querySelector("input[type=text]:focus")) return;
    const turn = state.turn;
    const reply = await tell("state");
    if (!reply || state.turn === turn) return;
    looking = null;
    if (ranking) await openRanking(ranking.length);
    else show("Answers were given elsewhere; this is the current question.");
  }

  keys.addEventListener("keydown", press);
  document.addEventListener("visibilitychange", lookAgain);
  refresh();
  return () => {
    keys.removeEventListener("keydown", press);
    document.removeEventListener("visibilitychange", lookAgain);
  };
}

// The page: requests to the server that it came from ----------------------------------------------

const LOST = "The server does not answer. Start the command again in the terminal and open the address it prints: no answer that was shown as taken is lost.";

async function request(action, body) {
  let response;
  try {
    response = await fetch(`/ask/${action}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  } catch {
    throw new Error(LOST);
  }
  const isJson = response.headers.get("Content-Type")?.startsWith("application/json");
  return isJson ? response.json() : { error: await response.text(), retry: true };
}

const place = document.getElementById("fewlier-label");
if (place) {
  history.replaceState(null, "", "/"); // the token is in a cookie now
  mount(place, request, document);
}

// The widget: messages to the kernel ---------------------------------------------------------------

const PATIENCE = 60000; // milliseconds; the kernel may be busy with another cell

function render({ model, el }) {
  const waiting = new Map();
  let last = 0;
  const receive = (message) => {
    waiting.get(message.id)?.(message.reply);
    waiting.delete(message.id);
  };
  const send = (action, body) => new Promise((resolve, reject) => {
    const id = ++last;
    waiting.set(id, resolve);
    setTimeout(() => waiting.delete(id) && reject(new Error("The kernel does not answer. It may be busy with another cell, or stopped.")), PATIENCE);
    model.send({ id, action, body });
  });
  const root = document.createElement("div");
  // JupyterLab takes letters for commands, such as deleting a cell. Its rules match the element that
  // has the focus, so this must be on that one; on a parent it comes too late.
  root.addEventListener("focusin", (event) => event.target.setAttribute("data-lm-suppress-shortcuts", "true"));
  root.tabIndex = 0;
  root.setAttribute("role", "region");
  root.setAttribute("aria-label", "Labelling");
  el.append(root);
  model.on("msg:custom", receive);
  const release = mount(root, send);
  return () => {
    release();
    model.off("msg:custom", receive);
  };
}

export default { render };
