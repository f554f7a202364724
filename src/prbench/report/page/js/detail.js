// One pair, opened: what was asked, both answers, every model's verdict in every context, and for the chosen model and
// context what it was shown and what it said.

const ORDER_WORDS = {
  rated: "each alone",
  "chosen-first": "chosen shown first",
  "chosen-second": "chosen shown second",
};
const CONTEXT_WORDS = {
  none: "No posts were shown.",
  plan: "Aspects that a planner inferred from the posts; they are in plans.jsonl of the run.",
  "profile+plan": "With them, aspects that a planner inferred; they are in plans.jsonl of the run.",
  oracle: "The true rubric, as under “What the user wanted”: this context leaks.",
};

class PairDetail {
  constructor(data, onOpen, onBack) {
    this.data = data;
    this.onOpen = onOpen;
    this.onBack = onBack;
    this.root = byId("detail");
    this.model = 0;
    this.turn = 0;
  }

  empty(text) {
    this.turn += 1;
    this.number = -1;
    this.root.replaceChildren(make("p", { class: "soft nothing" }, text));
  }

  /** Show a pair; `context` is the one whose verdict is looked at first. */
  async show(number, context) {
    const turn = ++this.turn;
    this.number = number;
    this.context = context;
    if (!this.data.models[this.model].contexts.includes(context)) {
      this.model = Math.max(
        0,
        this.data.models.findIndex((model) => model.contexts.includes(context)),
      );
    }
    const parts = await Promise.all([
      this.header(number),
      this.answers(number),
      this.matrix(number),
      this.verdict(),
      this.rubric(number),
    ]);
    if (turn !== this.turn) return; // another pair was opened meanwhile
    this.root.replaceChildren(...parts.flat());
    this.root.scrollTop = 0;
  }

  async header(number) {
    const { data } = this;
    const question = await data.text("questions", data.core.question[number]);
    const facts = ["category", "axis", "pole", "split"].map((name) => [name, data.word(name, number)]);
    const twin = data.twin(number);
    return [
      make(
        "div",
        { class: "bar" },
        make("button", { type: "button", class: "back", onclick: this.onBack }, "Back to the list"),
        make("span", { class: "chip accent" }, `user ${data.word("user", number)}`),
        facts.filter(([, value]) => value).map(([name, value]) => make("span", { class: "chip" }, `${name}: ${value}`)),
      ),
      question ? make("h2", { class: "voice question" }, question) : make("h2", {}, data.id(number)),
      make(
        "p",
        { class: "small soft" },
        make("a", { class: "permalink", href: `#pair=${encodeURIComponent(data.id(number))}` }, data.id(number)),
        twin < 0 ? null : " · ",
        twin < 0
          ? null
          : make(
              "button",
              { type: "button", class: "link twin", onclick: () => this.onOpen(twin) },
              `the same answers for ${data.word("user", twin)}, who wants the opposite`,
            ),
      ),
    ];
  }

  async answers(number) {
    const { core } = this.data;
    if (!core.chosen[number]) return [];
    const [chosen, rejected] = await Promise.all(
      [core.chosen, core.rejected].map((column) => this.data.text("answers", column[number])),
    );
    const answer = (kind, title, text) =>
      make("section", { class: `answer ${kind}` }, make("h3", {}, title), make("div", { class: "voice" }, text));
    return [
      make(
        "div",
        { class: "answers" },
        answer("chosen", "Chosen: what this user wants", chosen),
        answer("rejected", "Rejected", rejected),
      ),
    ];
  }

  /** Every model's verdict in every context; a cell opens what is behind it. */
  async matrix(number) {
    const { data } = this;
    const rows = await Promise.all(data.models.map((model, m) => this.matrixRow(model, m, number)));
    const heads = data.contexts.map((name) =>
      make(
        "th",
        { scope: "col" },
        name,
        data.leaking.has(name) ? make("span", { class: "chip leaks" }, "leaks") : null,
      ),
    );
    return [
      make("h3", {}, "Every model, every context"),
      make(
        "div",
        { class: "scroll", tabindex: 0, role: "group", "aria-label": "Scores of this pair" },
        make(
          "table",
          { class: "matrix" },
          make(
            "caption",
            { class: "small" },
            "Preference for the chosen answer, in the model's own units. Open a cell for what is behind it.",
          ),
          make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "model"), heads)),
          make("tbody", {}, rows),
        ),
      ),
    ];
  }

  async matrixRow(model, m, number) {
    const parts = await this.data.records(m);
    const cells = this.data.contexts.map((context) => {
      const outcome = outcomeOf(this.data.credits(m, context)?.[number]);
      if (!model.contexts.includes(context)) {
        const why = model.unsupported.includes(context) ? "not read" : "–";
        return make("td", { class: "soft small" }, why);
      }
      const pressed = m === this.model && context === this.context;
      const choose = async () => {
        [this.model, this.context] = [m, context];
        await this.show(this.number, context);
        byId("chosen-cell")?.focus();
      };
      return make(
        "td",
        {},
        make(
          "button",
          {
            type: "button",
            class: "cell",
            "aria-pressed": String(pressed),
            id: pressed ? "chosen-cell" : null,
            onclick: choose,
          },
          mark(outcome),
          make("span", {}, this.summary(model, parts, context, number, outcome)),
          make("span", { class: "visually-hidden" }, ` ${OUTCOME_WORDS[outcome]}, ${model.label} under ${context}`),
        ),
      );
    });
    return make("tr", {}, make("th", { scope: "row" }, model.label), cells);
  }

  summary(model, parts, context, number, outcome) {
    const margins = model.slots[context]
      .map(([, , key]) => parts[`${key}.margin`]?.[number])
      .filter((value) => value !== undefined && !Number.isNaN(value));
    if (!margins.length) return OUTCOME_WORDS[outcome];
    return score(margins.reduce((sum, value) => sum + value, 0) / margins.length, true);
  }

  /** What the chosen model said in the chosen context, and what it was shown. */
  async verdict() {
    const { data, model: m, context, number } = this;
    const model = data.models[m];
    if (!model.contexts.includes(context)) return [];
    const parts = await data.records(m);
    const said = await Promise.all(model.slots[context].map((slot) => this.said(slot, parts, number)));
    return [
      make(
        "section",
        { class: "behind-cell", "aria-label": `${model.label} under ${context}` },
        make("h3", {}, `${model.label} under ${context}`),
        make("ul", { class: "said" }, said.filter(Boolean)),
        await this.shown(parts, number),
      ),
    ];
  }

  async said([order, repeat, key], parts, number) {
    const verdict = VERDICTS[parts[`${key}.verdict`][number]];
    if (verdict === "absent") return null;
    const chosenPlace = order === "chosen-second" ? "second" : "first";
    const prefers =
      { tie: "sees no difference", invalid: "gave no readable verdict", failed: "did not answer" }[verdict] ??
      (verdict === chosenPlace ? "prefers the chosen answer" : "prefers the rejected answer");
    const scores = ["chosen_score", "rejected_score"].map((name) => parts[`${key}.${name}`]?.[number]);
    const margin = parts[`${key}.margin`]?.[number];
    const reason = parts.reasons[parts[`${key}.reason`]?.[number] ?? 0];
    const words = await wordsOf(this.data, parts[`${key}.words`]?.[number]);
    return make(
      "li",
      {},
      make("span", {}, `${ORDER_WORDS[order]}${repeat ? `, repeat ${repeat + 1}` : ""}: ${prefers}`),
      scores[0] !== undefined && !Number.isNaN(scores[0])
        ? make("span", { class: "soft" }, ` · chosen ${score(scores[0])}, rejected ${score(scores[1])}`)
        : null,
      margin !== undefined && !Number.isNaN(margin)
        ? make("span", { class: "soft" }, ` · preference ${score(margin, true)}`)
        : null,
      reason ? make("span", { class: "reason" }, ` · ${reason}`) : null,
      words.map((text) => make("blockquote", { class: "words" }, text)),
    );
  }

  async shown(parts, number) {
    const { data, context } = this;
    const note = CONTEXT_WORDS[context];
    const column = parts[`${context}.shown`];
    if (context === "none" || context === "oracle") return make("p", { class: "soft" }, note);
    if (!index.texts || !column) return make("p", { class: "soft" }, "What was shown is not in this page.");
    if (!column[number])
      return make("p", { class: "soft" }, "What was shown cannot be told from the records of this run.");
    const people = await block("people");
    const posts = people.profiles[column[number] - 1];
    if (!posts.length) return make("p", { class: "soft" }, note ?? "No posts were shown.");
    const who = parts[`${context}.users`][parts[`${context}.who`][number]];
    const gone = new Set(parts[`${context}.gone`][parts[`${context}.dropped`][number]]);
    const own = who === data.word("user", number);
    const whose = own ? `user ${who}, who asks` : `user ${who}, not of ${data.word("user", number)}, who asks`;
    const count = `${posts.length - gone.size} of ${posts.length} posts of ${whose}`;
    const items = await Promise.all(posts.map((post, place) => this.post(people, post, gone.has(place))));
    return make(
      "details",
      { class: "shown", open: true },
      make("summary", {}, `Shown: ${count}${gone.size ? `; ${gone.size} did not fit` : ""}`),
      note ? make("p", { class: "soft small" }, note) : null,
      make("ol", { class: "posts" }, items),
    );
  }

  async post(people, post, dropped) {
    const text = await this.data.text("posts", people.post_texts[post]);
    return make(
      "li",
      { class: dropped ? "dropped" : null },
      make(
        "span",
        { class: "small soft" },
        people.post_ids[post],
        dropped ? make("span", { class: "chip leaks" }, "left out: did not fit") : null,
      ),
      make("div", { class: "voice" }, text),
    );
  }

  async rubric(number) {
    const text = await this.data.text("rubrics", this.data.core.rubric[number]);
    if (!text) return [];
    const [narrative, aspects] = JSON.parse(text);
    const open = this.root.querySelector(".wanted")?.open;
    return [
      make(
        "details",
        { class: "wanted", open },
        make("summary", {}, "What the user wanted"),
        make("p", { class: "small soft" }, "Hidden from every model but under oracle."),
        narrative ? make("p", { class: "voice" }, narrative) : null,
        make(
          "ul",
          {},
          aspects.map(([aspect, reason, evidence]) =>
            make(
              "li",
              {},
              make("strong", {}, aspect),
              reason ? ` ${reason}` : null,
              evidence ? make("span", { class: "small soft" }, ` (${evidence})`) : null,
            ),
          ),
        ),
      ),
    ];
  }
}

async function wordsOf(data, number) {
  const text = await data.text("words", number ?? 0);
  return text ? text.split("\x1e").filter(Boolean) : [];
}
