// Sorting and filters of the leaderboard. The tables are complete without this file. The state of the filters is kept in
// the address, so that a view can be sent to another person.
(() => {
  const form = document.getElementById("filters");
  if (!form) return;
  const boards = [...document.querySelectorAll(".board")];
  const found = document.getElementById("found");
  const names = ["suite", "context", "kind", "weights", "model"];

  function wanted() {
    return Object.fromEntries(names.map((name) => [name, form.elements[name].value.trim()]));
  }

  function fits(row, section, board, want) {
    const has = { suite: board.dataset.suite, context: section.dataset.context, kind: row.dataset.kind, weights: row.dataset.weights };
    const matches = Object.entries(has).every(([name, value]) => !want[name] || want[name] === value);
    return matches && named(row, want);
  }

  function named(element, want) {
    return element.dataset.model.toLowerCase().includes(want.model.toLowerCase());
  }

  function apply() {
    const want = wanted();
    let shown = 0;
    let total = 0;
    for (const board of boards) {
      let inBoard = 0;
      for (const section of board.querySelectorAll("tbody")) {
        let inSection = 0;
        for (const row of section.querySelectorAll("tr[data-kind]")) {
          row.hidden = !fits(row, section, board, want);
          inSection += !row.hidden;
          total += 1;
        }
        section.hidden = inSection === 0;
        inBoard += inSection;
      }
      for (const run of board.querySelectorAll(".run")) run.hidden = !named(run, want);
      board.hidden = inBoard === 0;
      shown += inBoard;
    }
    found.textContent = shown === total ? `${total} rows` : `${shown} of ${total} rows`;
    keep(want);
  }

  function keep(want) {
    const chosen = Object.entries(want).filter(([, value]) => value);
    if (!chosen.length && !location.hash.includes("=")) return; // leave a link to a run or a board alone
    const hash = new URLSearchParams(chosen).toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  function restore() {
    if (!location.hash.includes("=")) return;
    const asked = new URLSearchParams(location.hash.slice(1));
    for (const name of names) form.elements[name].value = asked.get(name) ?? "";
  }

  function value(row, key) {
    const cell = row.querySelector(`[data-key="${key}"]`);
    if (!cell) return null;
    if (!("value" in cell.dataset)) return (cell.querySelector(".model-name") ?? cell).textContent.trim().toLowerCase();
    return cell.dataset.value === "" ? null : Number(cell.dataset.value);
  }

  function compare(one, two, direction) {
    if (one === null || two === null) return (one === null) - (two === null); // what is not known stays below
    return direction * (typeof one === "string" ? one.localeCompare(two) : one - two);
  }

  function sort(table, heading) {
    const key = heading.dataset.sort;
    const textual = ["rank", "group", "model"].includes(key);
    const before = heading.getAttribute("aria-sort");
    const direction = before ? (before === "ascending" ? -1 : 1) : textual ? 1 : -1;
    for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
    for (const section of table.tBodies) {
      const rows = [...section.querySelectorAll("tr[data-kind]")];
      rows.sort((one, two) => compare(value(one, key), value(two, key), direction));
      section.append(...rows);
    }
  }

  for (const heading of document.querySelectorAll(".ranking th[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => sort(heading.closest("table"), heading));
  }

  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  addEventListener("hashchange", () => {
    if (!location.hash.includes("=")) return; // a link to a run or a board
    restore();
    apply();
  });
  restore();
  apply();
})();
