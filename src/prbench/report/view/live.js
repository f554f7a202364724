// Follows the runs behind this page: says how far they are, and reloads when there is something new. It reloads by itself
// only while the reader is not reading closely (no key or pointer for a while, nothing opened or typed into); else it offers to.
(() => {
  const bar = document.getElementById("live");
  const state = document.getElementById("live-state");
  const button = document.getElementById("live-reload");
  const PLACE = `prbench-place ${location.pathname}`;
  const REST_MS = 4000;
  let touched = -REST_MS;

  const busy = () =>
    performance.now() - touched < REST_MS ||
    document.querySelector("dialog[open]") !== null ||
    ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement?.tagName);

  function keepPlace() {
    const fields = [...document.querySelectorAll("input[name], select[name]")].map((field) => [
      field.name,
      field.type === "checkbox" ? field.checked : field.value,
    ]);
    sessionStorage.setItem(PLACE, JSON.stringify({ y: scrollY, fields }));
  }

  function takePlace() {
    const kept = JSON.parse(sessionStorage.getItem(PLACE) ?? "null");
    sessionStorage.removeItem(PLACE);
    if (!kept) return;
    for (const [name, value] of kept.fields) restore(document.querySelector(`[name="${CSS.escape(name)}"]`), value);
    const settle = () => scrollTo({ top: kept.y, behavior: "instant" });
    settle();
    setTimeout(settle, 300); // once more when charts and lists have been laid out
  }

  function restore(field, value) {
    if (!field || field.value === value || field.checked === value) return;
    if (field.type === "checkbox") field.checked = value;
    else field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }

  function reload() {
    keepPlace();
    location.reload();
  }

  function said(run) {
    const number = (value) => value.toLocaleString("en");
    if (run.finished) return `${run.name}: finished, ${number(run.records)} records`;
    const share = run.expected ? ` (${Math.floor((100 * run.records) / run.expected)} %)` : "";
    return `${run.name}: ${number(run.records)} of ${number(run.expected)} records${share}`;
  }

  async function ask() {
    try {
      const reply = await fetch("/progress.json", { cache: "no-store" });
      show(await reply.json());
    } catch {
      state.textContent = "The server has stopped; this page stays as it is.";
      button.hidden = true;
    }
    setTimeout(ask, document.hidden ? 5000 : 1500);
  }

  function show(found) {
    const open = found.runs.filter((run) => !run.finished);
    const lines = open.length ? open.map(said) : found.runs.length === 1 ? found.runs.map(said) : [`${found.runs.length} runs, all finished`];
    state.textContent = found.problem ? `${lines.join(" · ")} · ${found.problem}` : lines.join(" · ");
    const newer = found.version !== bar.dataset.version;
    button.hidden = !newer;
    if (newer && !busy()) reload();
  }

  for (const kind of ["keydown", "pointerdown", "wheel", "touchmove"]) {
    addEventListener(kind, () => (touched = performance.now()), { passive: true });
  }
  button.addEventListener("click", reload);
  takePlace();
  ask();
})();
