// Charts: each element with data-chart names a path that returns [times, values] and is asked every two seconds while
// the page is visible. Following: a button with data-follow names a stream of table rows, and one with data-search one of
// those that a search finds. A button with data-pause stops charts, and the parts that update themselves. The rest works without this.
"use strict";
(() => {
  const EVERY_MS = 2000;
  const ROWS_MAX = 500;
  let isPaused = false;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const height = (element) => Number(element.dataset.height) || 200;

  function options(element) {
    const axis = () => ({ stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } });
    return {
      width: element.clientWidth || 320, height: height(element), legend: { show: false }, cursor: { show: false },
      scales: { x: { range: (_, low, high) => [low, Math.max(high, low + 30)] }, y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
      axes: [axis(), { ...axis(), size: 64 }],
      series: [{}, { label: element.dataset.unit || "", stroke: colour("--link"), width: 2, points: { show: true, size: 4 } }],
    };
  }

  async function draw(element, state) {
    if (document.hidden || isPaused) return;
    try {
      const response = await fetch(element.dataset.chart, { headers: { Accept: "application/json" } });
      if (!response.ok) return;
      const data = await response.json();
      if (data[0].length < 2) return;
      if (state.plot) state.plot.setData(data);
      else state.plot = new uPlot(options(element), data, element);
      element.dataset.drawn = "yes";
    } catch (_) { /* the page's own text says when the cluster is away */ }
  }

  function chart(element) {
    const state = {};
    draw(element, state);
    const timer = setInterval(() => (element.isConnected ? draw(element, state) : clearInterval(timer)), EVERY_MS);
    addEventListener("resize", () => state.plot && state.plot.setSize({ width: element.clientWidth, height: height(element) }));
    const redraw = () => {
      if (state.plot) { state.plot.destroy(); state.plot = null; draw(element, state); }
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    addEventListener("look", redraw);
  }

  // Rows are made by the server, which escapes everything in them.
  function follow(button) {
    const body = document.getElementById("messages");
    const summary = document.getElementById("summary");
    let source = null;
    let count = 0;

    function stop(text) {
      if (source) source.close();
      source = null;
      button.setAttribute("aria-pressed", "false");
      button.textContent = "Follow live";
      summary.textContent = text;
    }

    function start() {
      count = 0;
      source = new EventSource(button.dataset.follow);
      button.setAttribute("aria-pressed", "true");
      button.textContent = "Stop following";
      summary.textContent = "Following: waiting for messages.";
      source.onopen = () => { summary.textContent = `Following: ${count} new.`; summary.dataset.following = "yes"; };
      source.addEventListener("message", (event) => {
        body.insertAdjacentHTML("afterbegin", JSON.parse(event.data));
        while (body.rows.length > ROWS_MAX) body.lastElementChild.remove();
        count += 1;
        summary.textContent = `Following: ${count} new.`;
      });
      source.addEventListener("failed", (event) => stop(JSON.parse(event.data)));
      source.onerror = () => { if (source) summary.textContent = "Connecting again."; };
    }

    button.hidden = false;
    button.addEventListener("click", () => (source ? stop("Not following.") : start()));
  }

  // A search goes on where the page ended, until it has as much as the page may show, or is stopped.
  function search(button) {
    const body = document.getElementById("messages");
    const summary = document.getElementById("summary");
    const address = new URL(button.dataset.search, location.href);
    const link = () => document.getElementById(address.searchParams.get("way"));
    let source = null;

    function stop() {
      if (source) source.close();
      source = null;
      button.setAttribute("aria-pressed", "false");
      button.textContent = "Search on";
    }

    function reached(event) {
      if (!event.lastEventId) return;
      address.searchParams.set("cursor", event.lastEventId);
      address.searchParams.set("before", body.rows.length);
      const further = link() && new URL(link().href);
      if (further) {
        further.searchParams.set("cursor", event.lastEventId);
        link().href = further.href;
      }
    }

    function start() {
      source = new EventSource(address);
      button.setAttribute("aria-pressed", "true");
      button.textContent = "Stop searching";
      source.addEventListener("message", (event) => {
        body.insertAdjacentHTML(button.dataset.place, JSON.parse(event.data));
        document.getElementById("no-messages")?.remove();
        reached(event);
      });
      source.addEventListener("progress", (event) => { summary.textContent = JSON.parse(event.data); reached(event); });
      source.addEventListener("end", (event) => {
        const found = JSON.parse(event.data);
        summary.textContent = found.summary;
        if (link() && found.link) link().href = `?${found.link}`;
        else if (link()) link().remove();
        stop();
        button.remove();
        summary.dataset.searched = "yes";
      });
      source.addEventListener("failed", (event) => { stop(); summary.textContent += ` ${JSON.parse(event.data)}`; });
    }

    button.hidden = false;
    button.addEventListener("click", () => (source ? stop() : start()));
    start();
  }

  // A file's text goes into a text area of the same form, which is sent.
  function into(input) {
    input.closest("label").hidden = false;
    input.addEventListener("change", async () => {
      if (input.files.length) input.form.elements[input.dataset.into].value = await input.files[0].text();
    });
  }

  document.addEventListener("htmx:before:request", (event) => { if (isPaused) event.preventDefault(); });

  function pause(button) {
    button.hidden = !document.querySelector("[hx-trigger], [data-chart]");
    button.addEventListener("click", () => {
      isPaused = !isPaused;
      button.setAttribute("aria-pressed", String(isPaused));
    });
  }

  // Pages replace parts of themselves, so what is new is looked for whenever something changes.
  function begin() {
    for (const [name, work] of [["chart", chart], ["follow", follow], ["search", search], ["into", into], ["pause", pause]]) {
      for (const element of document.querySelectorAll(`[data-${name}]:not([data-begun])`)) {
        element.dataset.begun = "yes";
        work(element);
      }
    }
  }
  new MutationObserver(begin).observe(document.body, { childList: true, subtree: true });
  begin();
})();
