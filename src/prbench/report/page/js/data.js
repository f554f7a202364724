// The pairs, as the rest of the page asks for them. Credits go from 0 to 200 (100 is a tie).

const NO_VERDICT = 255;
const NOT_ASKED = 254;
const TIE = 100;
const VERDICTS = ["first", "second", "tie", "invalid", "failed", "absent"];

/** One of `right`, `wrong`, `tie`, `none` (asked, no verdict) and `absent` (not asked). */
function outcomeOf(credit) {
  if (credit === undefined || credit === NOT_ASKED) return "absent";
  if (credit === NO_VERDICT) return "none";
  return credit > TIE ? "right" : credit < TIE ? "wrong" : "tie";
}

class Data {
  constructor(core) {
    this.core = core;
    this.count = index.pairs;
    this.models = index.models;
    this.contexts = index.contexts.map((context) => context.name);
    this.leaking = new Set(index.contexts.filter((context) => context.leaks).map((context) => context.name));
    this.numbers = new Map(core.ids.map((id, number) => [id, number]));
    this.axes = core.axis_words.map((word) => (word ? word.split("+") : []));
    this.corpora = new Map();
  }

  static async open() {
    return new Data(await block("core"));
  }

  id(number) {
    return this.core.ids[number];
  }

  word(name, number) {
    return this.core[`${name}_words`][this.core[name][number]];
  }

  /** A model's credits in a context, or undefined where it was not evaluated there. */
  credits(model, context) {
    return this.core[`credit.${model}.${context}`];
  }

  /** The number of the pair with the same answers and the opposite wish, or -1. */
  twin(number) {
    return this.core.twin[number] - 1;
  }

  /** One text of a pool; only the block that holds it is unpacked. */
  async text(pool, number) {
    if (!number) return "";
    let found = index.pools[pool][0];
    let first = 0;
    for (const id of index.pools[pool]) {
      const start = Number(id.slice(pool.length + 1));
      if (start > number) break;
      [found, first] = [id, start];
    }
    return (await block(found)).texts[number - first];
  }

  /** All texts of a pool. */
  async texts(pool) {
    const blocks = await Promise.all(index.pools[pool].map(block));
    return blocks.flatMap((found) => found.texts);
  }

  /** All texts of a pool in lower case, laid end to end for searching; kept. */
  corpus(pool) {
    if (!this.corpora.has(pool)) this.corpora.set(pool, this.texts(pool).then(makeCorpus));
    return this.corpora.get(pool);
  }

  records(model) {
    return block(`model-${model}`);
  }
}

/** One long string finds a word faster than many short ones; `ends` tells which text a place lies in. */
function makeCorpus(texts) {
  const ends = new Uint32Array(texts.length);
  const lowered = texts.map((text) => text.toLowerCase());
  let end = 0;
  lowered.forEach((text, number) => {
    end += text.length + 1;
    ends[number] = end;
  });
  return { text: lowered.join("\0") + "\0", ends };
}
