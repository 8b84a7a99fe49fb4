// How pages look: colours, density and the side bar change at once, and are kept by the form that works without this.
// Names are copied. A line moves at the top while the next page is made. Loaded first, so that what waits for a script
// is drawn as waiting.
"use strict";
(() => {
  const root = document.documentElement;
  root.dataset.js = "yes";

  function choose(button) {
    const { form, name, value } = button;
    root.dataset[name] = value;
    for (const one of form.querySelectorAll(`[name=${name}]`)) one.setAttribute("aria-pressed", String(one === button));
    dispatchEvent(new Event("look"));
    const fields = new FormData(form);
    fields.set(name, value);
    fetch(form.action, { method: "POST", body: new URLSearchParams(fields), redirect: "manual" }).catch(() => {});
  }

  async function copy(button) {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.dataset.copied = "yes";
      button.title = button.querySelector("span").textContent = "Copied";
    } catch (_) { /* the browser does not allow it: the text can be selected */ }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.closest("[data-look]")) { event.preventDefault(); choose(button); }
    if (button?.dataset.copy !== undefined) copy(button);
    const link = event.target.closest("a[href]");
    const isPlain = !event.defaultPrevented && !event.ctrlKey && !event.metaKey && !event.shiftKey;
    if (link && isPlain && link.origin === location.origin && !link.hasAttribute("download") && !link.hash) root.dataset.busy = "yes";
  });
  document.addEventListener("submit", (event) => { if (!event.defaultPrevented) root.dataset.busy = "yes"; });
  addEventListener("pageshow", () => { delete root.dataset.busy; });
})();
