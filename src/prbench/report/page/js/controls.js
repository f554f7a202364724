// The filters above the list: from form fields to what is wanted, and back.

class Controls {
  constructor(data, onChange) {
    this.data = data;
    this.onChange = onChange;
    this.conditions = [];
    const any = (name) => [["*", "any"], ...data.core[`${name}_words`].map((word) => [`=${word}`, word || "(none)"])];
    fillSelect(byId("category"), any("category"));
    fillSelect(byId("user"), any("user"));
    const axes = [...new Set(data.axes.flat())].sort();
    fillSelect(byId("axis"), [["*", "any"], ...axes.map((axis) => [`=${axis}`, axis])]);
    const contexts = data.contexts.map((name) => [name, data.leaking.has(name) ? `${name} (leaks)` : name]);
    fillSelect(byId("context"), contexts);
    fillSelect(byId("condition-context"), contexts, defaultContext(data));
    fillSelect(
      byId("condition-model"),
      data.models.map((model, m) => [String(m), model.label]),
    );
    for (const name of ["category", "axis"]) byId(name).parentElement.hidden = byId(name).options.length < 3;
    byId("disagree").parentElement.hidden = data.models.length < 2;
    this.drawLegend();
    this.listen();
  }

  drawLegend() {
    const kinds = ["right", "wrong", "tie", "none", "absent"].map((outcome) =>
      make("span", {}, mark(outcome), OUTCOME_WORDS[outcome]),
    );
    const order = `left to right: ${this.data.models.map((model) => model.label).join(", ")}`;
    byId("legend").replaceChildren(...kinds, make("span", { class: "models", title: order }, order));
  }

  listen() {
    const form = byId("filters");
    form.addEventListener("submit", (event) => event.preventDefault());
    byId("query").addEventListener("input", () => this.changed());
    for (const name of ["scope", "category", "axis", "user", "context", "sort", "disagree"]) {
      byId(name).addEventListener("change", () => this.changed());
    }
    byId("more").addEventListener("click", () => {
      byId("more").setAttribute("aria-expanded", String(form.classList.toggle("unfolded")));
    });
    byId("condition-add").addEventListener("click", () => {
      const [model, context, outcome] = ["model", "context", "outcome"].map((name) => byId(`condition-${name}`).value);
      this.conditions = [...this.conditions, { model: Number(model), context, outcome }];
      this.changed();
    });
    byId("reset").addEventListener("click", () => {
      this.write({ ...EMPTY, context: defaultContext(this.data) });
      this.onChange(this.read());
    });
  }

  changed() {
    this.drawConditions();
    this.onChange(this.read());
  }

  read() {
    const picked = (name) => (byId(name).value === "*" ? null : byId(name).value.slice(1));
    return {
      query: byId("query").value,
      scope: byId("scope").value,
      context: byId("context").value,
      sort: byId("sort").value,
      category: picked("category"),
      axis: picked("axis"),
      user: picked("user"),
      disagree: byId("disagree").checked,
      conditions: this.conditions,
    };
  }

  write(wanted) {
    for (const name of ["query", "scope", "context", "sort"]) byId(name).value = wanted[name];
    for (const name of ["category", "axis", "user"]) {
      byId(name).value = wanted[name] === null ? "*" : `=${wanted[name]}`;
      if (byId(name).selectedIndex < 0) byId(name).value = "*";
    }
    byId("disagree").checked = wanted.disagree;
    this.conditions = [...wanted.conditions];
    this.drawConditions();
  }

  drawConditions() {
    const chips = this.conditions.map((condition, place) => {
      const { model, context, outcome } = condition;
      const text = `${this.data.models[model].label} ${OUTCOME_WORDS[outcome]} under ${context}`;
      const remove = () => {
        this.conditions = this.conditions.filter((_, other) => other !== place);
        this.changed();
      };
      return make(
        "button",
        { type: "button", class: "chip accent removable", "aria-label": `Remove: ${text}`, onclick: remove },
        `${text} ×`,
      );
    });
    byId("conditions").replaceChildren(...chips);
  }

  count(kept) {
    const all = this.data.count.toLocaleString("en");
    byId("count").value = kept === this.data.count ? `${all} pairs` : `${kept.toLocaleString("en")} of ${all} pairs`;
  }
}
