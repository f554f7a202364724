// The list of pairs: only the rows in sight exist, so ten thousand pairs scroll like ten.

const ROW_HEIGHT = 76;
const OVERSCAN = 6;

class PairList {
  constructor(data, questions, onOpen) {
    this.data = data;
    this.questions = questions;
    this.onOpen = onOpen;
    this.root = byId("list");
    this.spacer = this.root.querySelector(".spacer");
    this.kept = new Uint32Array();
    this.context = "";
    this.position = -1;
    this.root.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.root);
  }

  show(kept, context) {
    this.kept = kept;
    this.context = context;
    this.spacer.style.height = `${kept.length * ROW_HEIGHT}px`;
    this.columns = this.data.models.map((_, model) => this.data.credits(model, context));
    this.drawn = "";
    this.draw();
  }

  /** Mark a pair as the open one, and bring it into sight; -1 where it is not in the list. */
  select(number) {
    this.position = this.kept.indexOf(number);
    this.drawn = "";
    if (this.position >= 0) {
      const top = this.position * ROW_HEIGHT;
      const { scrollTop, clientHeight } = this.root;
      if (top < scrollTop) this.root.scrollTop = top;
      else if (top + ROW_HEIGHT > scrollTop + clientHeight) this.root.scrollTop = top + ROW_HEIGHT - clientHeight;
      this.root.setAttribute("aria-activedescendant", `row-${this.position}`);
    } else {
      this.root.removeAttribute("aria-activedescendant");
    }
    this.draw();
  }

  /** The pair so many places on, or null at the end. */
  neighbour(step) {
    if (!this.kept.length) return null;
    const next = this.position < 0 ? 0 : this.position + step;
    return next >= 0 && next < this.kept.length ? this.kept[next] : null;
  }

  draw() {
    const first = Math.max(0, Math.floor(this.root.scrollTop / ROW_HEIGHT) - OVERSCAN);
    const shown = Math.ceil(this.root.clientHeight / ROW_HEIGHT) + 2 * OVERSCAN;
    const last = Math.min(this.kept.length, first + shown);
    const key = `${first}-${last}`;
    if (key === this.drawn) return;
    this.drawn = key;
    const rows = [];
    for (let position = first; position < last; position++) rows.push(this.row(position));
    this.spacer.replaceChildren(...rows);
  }

  row(position) {
    const { data } = this;
    const number = this.kept[position];
    const question = this.questions[data.core.question[number]] || data.id(number);
    const facts = [data.word("category", number), data.word("axis", number), data.word("user", number)];
    const outcomes = this.columns.map((column) => outcomeOf(column?.[number]));
    const right = outcomes.filter((outcome) => outcome === "right").length;
    const judged = outcomes.filter((outcome) => outcome !== "absent").length;
    const row = make(
      "div",
      {
        class: "row",
        role: "option",
        id: `row-${position}`,
        "aria-selected": String(position === this.position),
        "aria-setsize": this.kept.length,
        "aria-posinset": position + 1,
        onclick: () => this.onOpen(number),
      },
      make("span", { class: "row-question" }, question),
      make("span", { class: "row-facts" }, facts.filter(Boolean).join(" · ")),
      make(
        "span",
        { class: "row-marks" },
        outcomes.map((outcome) => mark(outcome)),
      ),
      make("span", { class: "visually-hidden" }, `${right} of ${judged} models right`),
    );
    row.style.top = `${position * ROW_HEIGHT}px`;
    return row;
  }
}
