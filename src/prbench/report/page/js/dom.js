// Making elements. Text becomes text nodes, never markup: whatever a pair says, it is shown, not run.

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

const byId = (id) => document.getElementById(id);

const OUTCOME_WORDS = { right: "right", wrong: "wrong", tie: "tie", none: "no verdict", absent: "not asked" };

/** A small mark of a verdict: its shape says what its colour says. */
function mark(outcome, label) {
  return make("span", { class: `verdict ${outcome}`, title: label, "aria-hidden": label ? null : "true" });
}

function fillSelect(select, options, chosen) {
  select.replaceChildren(
    ...options.map(([value, text]) => make("option", { value, selected: value === chosen }, text)),
  );
}

/** A score with as many digits as it deserves. */
function score(value, signed = false) {
  if (value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  const text =
    size !== 0 && (size < 0.001 || size >= 100000) ? size.toExponential(2) : String(Number(size.toPrecision(4)));
  return (value < 0 ? "−" : signed && value > 0 ? "+" : "") + text;
}
