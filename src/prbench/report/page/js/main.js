// The page: overview or pairs by the address, the keys, and what belongs together kept together.

class Browser {
  constructor(data, questions) {
    this.data = data;
    this.wanted = { ...EMPTY, context: defaultContext(data) };
    this.pair = null;
    this.turn = 0;
    this.controls = new Controls(data, (wanted) => this.filter(wanted));
    this.list = new PairList(data, questions, (number) => this.open(number));
    this.detail = new PairDetail(
      data,
      (number) => this.open(number),
      () => this.back(),
    );
    this.root = byId("browser");
  }

  /** Follow an address that was typed, clicked or gone back to. */
  async follow({ pair, wanted }) {
    this.controls.write(wanted);
    this.pair = pair === null ? null : (this.data.numbers.get(pair) ?? null);
    const unknown = pair !== null && this.pair === null;
    await this.refresh(wanted, unknown ? `There is no pair ${pair} in this report.` : "");
    this.root.classList.toggle("reading", pair !== null);
  }

  async filter(wanted) {
    await this.refresh(wanted);
    this.remember();
  }

  /** Find what is wanted and show it; what an outdated keystroke asked for is dropped. */
  async refresh(wanted, instead = "") {
    const turn = ++this.turn;
    const started = performance.now();
    this.root.setAttribute("aria-busy", "true");
    const searched = await searchPairs(this.data, wanted.query, wanted.scope);
    if (turn !== this.turn) return;
    this.root.removeAttribute("aria-busy");
    this.wanted = wanted;
    const kept = selectPairs(this.data, wanted, searched);
    this.list.show(kept, wanted.context);
    this.controls.count(kept.length);
    this.root.dataset.filterMs = (performance.now() - started).toFixed(1);
    const roomy = matchMedia("(min-width: 60rem)").matches;
    if (this.pair === null && kept.length && roomy && !instead) this.pair = kept[0];
    this.list.select(this.pair ?? -1);
    if (this.pair === null)
      this.detail.empty(instead || (kept.length ? "Open a pair." : "No pair fits these filters."));
    else if (this.pair !== this.detail.number || wanted.context !== this.detail.context)
      await this.detail.show(this.pair, wanted.context);
  }

  async open(number) {
    this.pair = number;
    this.list.select(number);
    this.root.classList.add("reading");
    this.remember();
    await this.detail.show(number, this.wanted.context);
  }

  step(by) {
    const next = this.list.neighbour(by);
    if (next !== null) this.open(next);
  }

  back() {
    this.root.classList.remove("reading");
    this.list.root.focus();
  }

  remember() {
    const id = this.pair === null ? null : this.data.id(this.pair);
    history.replaceState(null, "", writeAddress(id, this.wanted, this.data));
  }
}

let opening = null;

/** The browser of pairs; its data are unpacked when it is first looked at. */
function openBrowser() {
  opening ??= (async () => {
    const data = await Data.open();
    const browser = new Browser(data, await data.texts("questions"));
    listenForKeys(browser);
    const idle = window.requestIdleCallback ?? ((work) => setTimeout(work, 500));
    idle(() => ["questions", "answers"].forEach((pool) => data.corpus(pool))); // so that the first search is quick
    return browser;
  })();
  return opening;
}

async function route() {
  const hash = location.hash;
  const pairs = /^#pairs?([&=]|$)/.test(hash);
  byId("browser").hidden = !pairs;
  byId("overview").hidden = pairs;
  document.documentElement.classList.toggle("browsing", pairs);
  for (const link of document.querySelectorAll(".masthead nav a")) {
    if (pairs && link.getAttribute("href") === "#pairs") link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!pairs) {
    if (hash.length > 1) document.getElementById(hash.slice(1))?.scrollIntoView();
    return;
  }
  window.scrollTo(0, 0);
  const browser = await openBrowser();
  await browser.follow(readAddress(location.hash, browser.data));
}

function listenForKeys(browser) {
  const help = byId("help");
  byId("keys").addEventListener("click", () => help.showModal());
  document.addEventListener("keydown", (event) => {
    if (byId("browser").hidden || help.open || event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input, select, textarea");
    if (typing) {
      if (event.key === "Escape") browser.list.root.focus();
      return;
    }
    const inDetail = event.target.closest("#detail");
    const inList = event.target === browser.list.root;
    const actions = {
      j: () => browser.step(1),
      k: () => browser.step(-1),
      ArrowDown: inList ? () => browser.step(1) : null,
      ArrowUp: inList ? () => browser.step(-1) : null,
      Enter: inList ? () => (browser.pair === null ? browser.step(1) : browser.detail.root.focus()) : null,
      "/": () => byId("query").focus(),
      "?": () => help.showModal(),
      m: () => openTwin(browser),
      Escape: () =>
        inDetail || (browser.root.classList.contains("reading") && !inList) ? browser.back() : (location.hash = "#top"),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

function openTwin(browser) {
  const twin = browser.pair === null ? -1 : browser.data.twin(browser.pair);
  if (twin >= 0) browser.open(twin);
}

/** Which section is in sight, shown in the bar on top. */
function followScroll() {
  const links = new Map(
    [...document.querySelectorAll(".masthead nav a")].map((link) => [link.getAttribute("href"), link]),
  );
  const watch = new IntersectionObserver(
    (seen) => {
      for (const { target, isIntersecting } of seen) {
        const link = links.get(`#${target.id}`);
        if (!link) continue;
        if (isIntersecting) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    },
    { rootMargin: "-45% 0px -50% 0px" },
  );
  document.querySelectorAll("section.block").forEach((section) => watch.observe(section));
}

function start() {
  document.querySelectorAll(".no-script").forEach((note) => note.remove());
  if (!("DecompressionStream" in window)) {
    byId("browser").prepend(
      make(
        "p",
        { class: "note warning" },
        "This browser is too old to unpack the pairs (it lacks DecompressionStream).",
      ),
    );
  }
  addEventListener("hashchange", route);
  followScroll();
  route();
}

start();
