// A table with data-drawer shows a record next to itself. Following: a button with data-follow names a stream of table rows, and one with data-search one of those that a search
// finds. A button with data-pause stops charts, and the parts that update themselves. The rest works without this.
"use strict";
(() => {
  const ROWS_MAX = 500;
  let isPaused = false;

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

  // A record next to the list: what its own page has of it. Previous and Next go along the list, as it is then.
  function drawer(body) {
    const dialog = document.getElementById(body.dataset.drawer);
    const part = (name) => dialog.querySelector(`[data-${name}]`);
    const steps = [...dialog.querySelectorAll("[data-step]")];
    let row = null;

    const neighbour = (step) => (step.dataset.step < 0 ? row.previousElementSibling : row.nextElementSibling);

    function mark(next) {
      row?.removeAttribute("aria-current");
      row = next;
      row?.setAttribute("aria-current", "true");
    }

    async function show(next) {
      mark(next);
      const link = row.querySelector("a");
      const response = await fetch(link.href);
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      if (row !== next) return;
      const found = page.querySelector("#record") || page.querySelector("main [role=alert]");
      part("record").replaceChildren(document.adoptNode(found));
      dialog.querySelector("h2").textContent = page.querySelector("h1").textContent.trim();
      part("page").href = link.href;
      for (const step of steps) step.disabled = !neighbour(step);
      if (!dialog.open) dialog.show();
    }

    function close() {
      const link = row?.querySelector("a");
      mark(null);
      dialog.close();
      link?.focus();
    }

    body.addEventListener("click", (event) => {
      const link = event.target.closest("a");
      if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      show(link.closest("tr"));
    });
    for (const step of steps) step.addEventListener("click", () => show(neighbour(step)));
    part("close").addEventListener("click", close);
    dialog.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  }

  // A file's text goes into a text area of the same form, which is sent.
  function into(input) {
    input.closest("label").hidden = false;
    input.addEventListener("change", async () => {
      if (input.files.length) input.form.elements[input.dataset.into].value = await input.files[0].text();
    });
  }

  document.addEventListener("htmx:before:request", (event) => { if (isPaused && !event.target.matches?.("form")) event.preventDefault(); });

  // A part that cannot be updated keeps what it has, and the page says since when. `failed` has, for each of them, its last
  // update and the cause.
  const updated = new WeakMap();
  const failed = new Map();

  function stale() {
    for (const element of failed.keys()) if (!element.isConnected) failed.delete(element);
    let note = document.getElementById("stale");
    if (!failed.size) { note?.remove(); return; }
    if (!note) {
      note = document.createElement("p");
      note.id = "stale";
      note.className = "notes mild";
      note.setAttribute("role", "status");
      document.querySelector("main .head").after(note);
    }
    const [since, cause] = [...failed.values()].sort((one, other) => one[0] - other[0])[0];
    if (note.dataset.said === `${since} ${cause}`) return;
    note.dataset.said = `${since} ${cause}`;
    const moment = document.createElement("time");
    moment.dateTime = moment.textContent = new Date(since).toISOString();
    note.replaceChildren("Not updated since ", moment, `: ${cause}. What is shown is from then; the page asks on.`);
  }

  function keep(element, cause) {
    failed.set(element, [updated.get(element) || performance.timeOrigin, cause]);
    stale();
  }

  document.addEventListener("htmx:after:request", (event) => {
    const element = event.target;
    const { status } = event.detail.ctx.response;
    if (status >= 500 && !element.querySelector("[role=alert]") && element.matches("#live, #metrics")) {
      event.preventDefault();
      const page = new DOMParser().parseFromString(event.detail.ctx.text, "text/html");
      keep(element, page.querySelector("main [role=alert] p")?.textContent.trim() || "the console failed");
      return;
    }
    updated.set(element, Date.now());
    failed.delete(element);
    stale();
  });
  document.addEventListener("htmx:error", (event) => {
    if (event.target.matches?.("#live, #metrics")) keep(event.target, "the console does not respond");
  });

  function pause(button) {
    button.hidden = !document.querySelector("[hx-trigger], [data-chart]");
    button.addEventListener("click", () => {
      isPaused = !isPaused;
      document.documentElement.dataset.paused = isPaused ? "yes" : "";
      button.setAttribute("aria-pressed", String(isPaused));
    });
  }

  // Ctrl-K, or Cmd-K, begins a search by name.
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    const field = document.querySelector(".find input");
    if (field?.checkVisibility()) { field.focus(); field.select(); } else location.href = document.querySelector(".find")?.action || "/";
  });

  // Pages replace parts of themselves, so what is new is looked for whenever something changes.
  function begin() {
    for (const [name, work] of [["follow", follow], ["search", search], ["into", into], ["pause", pause], ["drawer", drawer]]) {
      for (const element of document.querySelectorAll(`[data-${name}]:not([data-begun])`)) {
        element.dataset.begun = "yes";
        work(element);
      }
    }
  }
  new MutationObserver(begin).observe(document.body, { childList: true, subtree: true });
  begin();
})();
