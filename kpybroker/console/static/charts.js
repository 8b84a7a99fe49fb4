// Charts, and the time zone of the page. An element with data-chart names a path that returns [times, values], null in a
// gap, and is asked every two seconds while the page is visible. A select with data-range chooses how far charts reach
// back, one with data-times how moments are said, on the page and in charts; both are remembered. Each <time> has its
// moment in UTC, which is what it shows without this.
"use strict";
(() => {
  const EVERY_MS = 2000;
  const SHOWN_S_MIN = 60;
  const root = document.documentElement;
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const height = (element) => Number(element.dataset.height) || 200;
  const charts = new Set();

  function remembered(name, otherwise, values) {
    try {
      const found = localStorage.getItem(name);
      return values.includes(found) ? found : otherwise;
    } catch (_) { return otherwise; }
  }
  function remember(name, value) {
    try { localStorage.setItem(name, value); } catch (_) { /* for this page only */ }
  }
  const RANGES = { "15m": 900, "1h": 3600, "6h": 21600 };
  let range = remembered("range", "15m", Object.keys(RANGES));
  let times = remembered("times", "utc", ["utc", "local", "relative"]);

  // --- numbers and moments as people say them

  const twoDigits = (number) => String(number).padStart(2, "0");

  function clock(seconds, step) {
    const at = new Date(seconds * 1000);
    const parts = times === "utc"
      ? [at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()]
      : [at.getHours(), at.getMinutes(), at.getSeconds()];
    return parts.slice(0, step < 60 ? 3 : 2).map(twoDigits).join(":");
  }

  const zone = () => (times === "utc" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone || "local time");

  function iso(at) {
    const offset = -at.getTimezoneOffset();
    const shifted = new Date(at.getTime() + offset * 60000).toISOString().slice(0, -1);
    const size = Math.abs(offset);
    return `${shifted}${offset < 0 ? "-" : "+"}${twoDigits(Math.floor(size / 60))}:${twoDigits(size % 60)}`;
  }

  function ago(at) {
    const seconds = (Date.now() - at.getTime()) / 1000;
    const size = Math.abs(seconds);
    const [count, unit] = size < 60 ? [size, "s"] : size < 3600 ? [size / 60, "min"] : size < 172800 ? [size / 3600, "h"] : [size / 86400, "days"];
    const text = `${Math.floor(count)} ${unit}`;
    return seconds < 0 ? `in ${text}` : `${text} ago`;
  }

  function said(moment) {
    const at = new Date(moment);
    if (times === "utc" || Number.isNaN(at.getTime())) return moment;
    return times === "local" ? iso(at) : ago(at);
  }

  function number(value, unit) {
    if (value === null || value === undefined) return "-";
    const [word, each] = unit.split("/");
    const rate = each ? `/${each}` : "";
    const isBytes = word === "bytes";
    const base = isBytes ? 1024 : 1000;
    const names = isBytes ? ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] : ["", "k", "M", "G", "T", "P"];
    let size = Math.abs(value);
    let step = 0;
    while (size >= base && step < names.length - 1) { size /= base; step += 1; }
    const digits = size >= 100 || Number.isInteger(size) ? 0 : size >= 10 ? 1 : 2;
    const text = `${value < 0 ? "-" : ""}${Number(size.toFixed(digits))}`;
    return isBytes ? `${text} ${names[step]}${rate}` : `${text}${names[step] ? ` ${names[step]}` : ""}${rate}`;
  }

  // --- charts

  const POWERS = Array.from({ length: 50 }, (_, power) => 2 ** power);
  const context = document.createElement("canvas").getContext("2d");
  function width(texts, font) {
    context.font = font;
    return Math.ceil(Math.max(...texts.map((text) => context.measureText(text).width)));
  }

  function options(element, state) {
    const unit = element.dataset.unit || "";
    const font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const axis = () => ({ stroke: colour("--faint"), font, grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), size: 4 } });
    return {
      width: element.clientWidth || 320, height: height(element), legend: { show: false },
      padding: [12, 16, 0, 0],
      cursor: { drag: { x: false, y: false }, y: false },
      scales: { x: { time: true, range: () => [state.from, state.to] }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
      axes: [
        { ...axis(), space: 80, size: 30, values: (_, splits, _axis, _space, step) => splits.map((at) => clock(at, step)) },
        { ...axis(), space: 28, incrs: unit.startsWith("bytes") ? POWERS : undefined, values: (_, splits) => splits.map((value) => number(value, unit)),
          size: (_, texts) => (texts ? width(texts, font) + 14 : 40) },
      ],
      series: [{}, { label: unit, stroke: colour("--link"), fill: `${colour("--link")}18`, width: 2, spanGaps: false, points: { show: (plot) => plot.data[0].length < 40, size: 4 } }],
      hooks: { setCursor: [(plot) => point(element, plot, unit)] },
    };
  }

  // What is under the pointer, in words; the legend has the newest, least and most.
  function point(element, plot, unit) {
    const { idx, left } = plot.cursor;
    const tip = element.querySelector(".chart-tip");
    const value = idx === null || idx === undefined || left < 0 ? null : plot.data[1][idx];
    tip.hidden = value === null || value === undefined;
    if (tip.hidden) return;
    tip.textContent = `${clock(plot.data[0][idx], 1)} ${zone()} · ${number(value, unit)}${unit.startsWith("bytes") ? "" : ` ${unit.split("/")[0]}`}`;
    const place = plot.valToPos(plot.data[0][idx], "x") + plot.bbox.left / devicePixelRatio;
    tip.style.left = `${Math.max(0, Math.min(place - tip.offsetWidth / 2, element.clientWidth - tip.offsetWidth))}px`;
  }

  function legend(element, data, unit) {
    const values = data[1].filter((value) => value !== null);
    const text = values.length
      ? [["last", data[1][data[1].length - 1]], ["least", Math.min(...values)], ["most", Math.max(...values)]]
        .map(([word, value]) => `${word} ${number(value, unit)}`).join(" · ")
      : "no number yet";
    element.querySelector(".chart-legend").textContent = `${text} · ${zone()}`;
  }

  async function draw(element, state) {
    if (document.hidden || root.dataset.paused) return;
    try {
      const address = new URL(element.dataset.chart, location.href);
      address.searchParams.set("range", range);
      const response = await fetch(address, { headers: { Accept: "application/json" } });
      if (!response.ok) return;
      const data = await response.json();
      if (!element.isConnected) return;
      state.to = Date.now() / 1000;
      const first = data[0].length ? data[0][0] : state.to;
      state.from = Math.max(state.to - RANGES[range], Math.min(first, state.to - SHOWN_S_MIN));
      legend(element, data, element.dataset.unit || "");
      if (data[0].length < 2) return;
      state.data = data;
      if (state.plot) state.plot.setData(data);
      else {
        state.plot = new uPlot(options(element, state), data, element);
        element.append(element.querySelector(".chart-legend"));
      }
      element.dataset.drawn = "yes";
    } catch (_) { /* the page's own text says when the cluster is away */ }
  }

  function chart(element) {
    for (const name of ["chart-tip", "chart-legend"]) {
      const made = document.createElement("p");
      made.className = name;
      made.hidden = name === "chart-tip";
      element.append(made);
    }
    const state = {};
    charts.add([element, state]);
    draw(element, state);
    const timer = setInterval(() => (element.isConnected ? draw(element, state) : clearInterval(timer)), EVERY_MS);
    addEventListener("resize", () => state.plot && state.plot.setSize({ width: element.clientWidth, height: height(element) }));
  }

  function again() {
    for (const one of charts) {
      const [element, state] = one;
      if (!element.isConnected) { charts.delete(one); continue; }
      if (state.plot) { state.plot.destroy(); state.plot = null; }
      draw(element, state);
    }
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  addEventListener("look", again);

  // --- choices

  function choice(select, value, name, chosen) {
    select.closest("label").hidden = false;
    select.value = value;
    select.addEventListener("change", () => {
      chosen(select.value);
      remember(name, select.value);
      again();
      begin();
    });
  }

  function say() {
    for (const element of document.querySelectorAll("time[datetime]")) {
      const text = said(element.dateTime);
      if (element.textContent !== text) element.textContent = text;
      element.title = times === "relative" ? element.dateTime : "";
    }
  }

  function begin() {
    for (const element of document.querySelectorAll("[data-chart]:not([data-begun])")) {
      element.dataset.begun = "yes";
      chart(element);
    }
    for (const select of document.querySelectorAll("select[data-range]:not([data-begun])")) {
      if (!document.querySelector("[data-chart]")) continue;
      select.dataset.begun = "yes";
      choice(select, range, "range", (value) => { range = value; });
    }
    for (const select of document.querySelectorAll("select[data-times]:not([data-begun])")) {
      if (!document.querySelector("[data-chart], time[datetime]")) continue;
      select.dataset.begun = "yes";
      choice(select, times, "times", (value) => { times = value; });
    }
    say();
  }
  new MutationObserver(begin).observe(document.body, { childList: true, subtree: true, characterData: true });
  setInterval(() => { if (times === "relative" && !document.hidden) say(); }, 1000);
  begin();
})();
