// Keys for people who judge many pairs. Everything works without this file: it only presses the buttons that are there.
(() => {
  const form = document.getElementById("judge");
  for (const hidden of document.querySelectorAll("[data-theme-toggle], .keys")) hidden.hidden = false;

  const back = () => document.querySelector("a[data-key='back']");
  const rows = form ? [...form.querySelectorAll("[data-row]")] : [];
  const buttons = (row) => [...row.querySelectorAll("input[type=radio]")];
  const answered = (row) => buttons(row).some((button) => button.checked);

  const focused = () => rows.find((row) => row.contains(document.activeElement));
  // The line that digits speak to: where the focus is, else the first one that is open.
  const current = () => focused() || rows.find((row) => !answered(row)) || rows.at(-1);

  function enter(row) {
    if (!row) return;
    const all = buttons(row);
    (all.find((button) => button.checked) || all[0]).focus();
    row.scrollIntoView({ block: "nearest" });
  }

  function mark(row, key) {
    const found = buttons(row).find((button) => (button.dataset.key || button.value) === key);
    if (!found) return false;
    found.checked = true;
    found.focus();
    enter(rows[rows.indexOf(row) + 1]);
    return true;
  }

  // Whether the key was ours. Arrows move between lines only from a line: elsewhere they scroll the page.
  function press(event) {
    // A key that is held down would rate every line below, or leaf back to the first pair.
    if (event.repeat && /^([0-9u]|Enter)$/.test(event.key)) return true;
    if (/^[0-9]$/.test(event.key)) return rows.length > 0 && mark(current(), event.key);
    const steps = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (steps && focused()) {
      enter(rows[rows.indexOf(focused()) + steps]);
      return true;
    }
    if (event.key === "Enter" && form && !document.activeElement.closest("a, button, summary")) {
      form.requestSubmit();
      return true;
    }
    if (event.key === "u" && back()) {
      back().click();
      return true;
    }
    return false;
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.activeElement.closest("textarea, select, .posts")) return; // typing, or scrolling the posts
    if (press(event)) event.preventDefault();
  });

  // A second click while the first is under way would send the same form twice.
  form?.addEventListener("submit", () => setTimeout(() => { document.getElementById("save").disabled = true; }));
  addEventListener("pageshow", () => { if (form) document.getElementById("save").disabled = false; });
})();
