"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const short = (number) => String(Number(number.toPrecision(4)));
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const count = (n) => n.toLocaleString("en");
  const PAGE = 10;

  // Theme: the system's, until the reader chooses.
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const nameTheme = () => { $("theme").textContent = isDark() ? "Light theme" : "Dark theme"; };
  $("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  system.addEventListener("change", nameTheme);
  nameTheme();

  // Rows: which are shown, and in which order.
  const table = $("table");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  let limit = PAGE;

  const isChosen = {
    "": () => true,
    above: (row) => row.dataset.above === "1",
    below: (row) => row.dataset.above === "0",
    missed: (row) => row.dataset.above === "0" && row.dataset.label === "anomaly",
    alarm: (row) => row.dataset.above === "1" && row.dataset.label === "normal",
  };

  const showRows = () => {
    const wanted = $("filter").value.trim().toLowerCase();
    const choose = isChosen[$("verdict").value];
    const found = [...body.rows].filter((row) => choose(row) && texts.get(row).includes(wanted));
    const shown = new Set(found.slice(0, limit));
    for (const row of rows) row.hidden = !shown.has(row);
    $("shown").textContent = `${count(shown.size)} of ${count(found.length)} rows`;
    $("more").hidden = found.length <= limit;
  };

  const comparison = (key) => {
    const isText = rows.some((row) => Number.isNaN(Number(row.dataset[key])));
    const byText = (a, b) => a.dataset[key].localeCompare(b.dataset[key]);
    const byNumber = (a, b) => a.dataset[key] - b.dataset[key];
    return isText ? byText : byNumber;
  };

  const sortBy = (header) => {
    const isRising = header.getAttribute("aria-sort") === "descending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", isRising ? "ascending" : "descending");
    const compare = comparison(header.dataset.key);
    body.append(...[...body.rows].sort((a, b) => (isRising ? compare(a, b) : compare(b, a))));
    showRows();
  };

  for (const header of table.tHead.rows[0].cells) {
    if (!header.dataset.key) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    button.addEventListener("click", () => sortBy(header));
    header.append(button);
  }
  $("filter").addEventListener("input", () => { limit = PAGE; showRows(); });
  $("verdict").addEventListener("change", () => { limit = PAGE; showRows(); });
  $("more").addEventListener("click", () => { limit += PAGE; showRows(); });

  // Threshold: counts over all rows, and the verdict for each row on the page.
  const line = $("scores-threshold");
  const place = (score) => {
    const { low, high, left, right } = data.axis;
    const share = Math.min(Math.max((score - low) / (high - low), 0), 1);
    return left + share * (right - left);
  };
  const put = (id, text) => { if ($(id)) $(id).textContent = text; };

  const showThreshold = () => {
    const i = Number($("slider").value);
    const threshold = data.thresholds[i];
    put("at", short(threshold));
    put("above", count(data.above[i]));
    put("above-share", percent(data.above[i] / data.rows));
    put("rate", percent(data.rate[i]));
    put("rate-scatter", `95 % have ${percent(data.rate_low[i])} to ${percent(data.rate_high[i])}`);
    $("slider").setAttribute("aria-valuetext", `${short(threshold)}: ${data.above[i]} rows above`);
    if (data.anomalous) {
      const [hits, alarms] = [data.anomalous.above[i], data.normal.above[i]];
      put("recall", percent(hits / data.anomalous.rows));
      put("precision", hits + alarms ? percent(hits / (hits + alarms)) : "–");
      put("alarms", percent(alarms / data.normal.rows));
    }
    line.setAttribute("transform", `translate(${place(threshold) - place(data.thresholds[data.start])} 0)`);
    for (const row of rows) {
      const isAbove = Number(row.dataset.score) > threshold;
      row.dataset.above = isAbove ? "1" : "0";
      row.querySelector(".verdict").textContent = isAbove ? "above" : "below";
    }
    showRows();
  };
  $("slider").addEventListener("input", showThreshold);
  $("reset").addEventListener("click", () => { $("slider").value = data.start; showThreshold(); });

  for (const id of ["theme", "panel", "controls"]) $(id).hidden = false;
  showThreshold();
})();
