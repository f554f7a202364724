// Which pairs are listed, and in which order. Everything here is a pass over typed arrays.

const EMPTY = Object.freeze({
  query: "",
  scope: "answers",
  category: null,
  axis: null,
  user: null,
  context: "",
  sort: "suite",
  disagree: false,
  conditions: [],
});

/** Words and "quoted phrases" of a query, in lower case. */
function termsOf(query) {
  const terms = [];
  for (const [, phrase, word] of query.toLowerCase().matchAll(/"([^"]+)"?|(\S+)/g)) terms.push(phrase ?? word);
  return terms.filter(Boolean);
}

/** For each text of a corpus whether it holds a term; after a hit the search goes on in the next text. */
function holding({ text, ends }, term) {
  const found = new Uint8Array(ends.length);
  let number = 0;
  for (let at = text.indexOf(term); at >= 0; at = text.indexOf(term, ends[number])) {
    while (ends[number] <= at) number++;
    found[number] = 1;
  }
  return found;
}

/** For each pair whether it holds every term, in any of the texts searched. Null where there is nothing to search. */
async function searchPairs(data, query, scope) {
  const terms = termsOf(query);
  if (!terms.length) return null;
  const found = new Uint8Array(data.count).fill(1);
  for (const term of terms) {
    const holds = await holdersOf(data, term, scope);
    for (let i = 0; i < found.length; i++) found[i] &= holds[i];
  }
  return found;
}

async function holdersOf(data, term, scope) {
  const { core } = data;
  const holds = Uint8Array.from(core.ids, (id) => (id.toLowerCase().includes(term) ? 1 : 0));
  const [questions, answers] = await Promise.all(["questions", "answers"].map((pool) => data.corpus(pool)));
  const inQuestion = holding(questions, term);
  const inAnswer = holding(answers, term);
  for (let i = 0; i < holds.length; i++) {
    holds[i] |= inQuestion[core.question[i]] | inAnswer[core.chosen[i]] | inAnswer[core.rejected[i]];
  }
  if (scope === "all") await addHidden(data, term, holds);
  return holds;
}

/** Also what stands behind a pair: rubric, the user's own posts, what judges wrote. */
async function addHidden(data, term, holds) {
  const { core } = data;
  const inRubric = holding(await data.corpus("rubrics"), term);
  const inProfile = await profilesHolding(data, term);
  for (let i = 0; i < holds.length; i++) holds[i] |= inRubric[core.rubric[i]] | inProfile[core.profile[i]];
  const inWords = holding(await data.corpus("words"), term);
  if (!inWords.includes(1)) return;
  for (let model = 0; model < data.models.length; model++) {
    const parts = await data.records(model);
    for (const slots of Object.values(data.models[model].slots)) {
      for (const [, , key] of slots) {
        const words = parts[`${key}.words`];
        if (words) for (let i = 0; i < holds.length; i++) holds[i] |= inWords[words[i]];
      }
    }
  }
}

async function profilesHolding(data, term) {
  const people = await block("people");
  const inPost = holding(await data.corpus("posts"), term);
  return Uint8Array.from(people.profiles, (posts) => (posts.some((post) => inPost[people.post_texts[post]]) ? 1 : 0));
}

/** The numbers of the pairs that a reader wants to see. */
function selectPairs(data, wanted, searched) {
  const tests = testsOf(data, wanted, searched);
  const kept = new Uint32Array(data.count);
  let size = 0;
  for (let i = 0; i < data.count; i++) if (tests.every((test) => test(i))) kept[size++] = i;
  return sortPairs(data, wanted, kept.subarray(0, size));
}

function testsOf(data, wanted, searched) {
  const { core } = data;
  const tests = [];
  if (searched) tests.push((i) => searched[i]);
  for (const name of ["category", "user"]) {
    if (wanted[name] !== null) {
      const code = core[`${name}_words`].indexOf(wanted[name]);
      tests.push((i) => core[name][i] === code);
    }
  }
  if (wanted.axis !== null) {
    const decides = data.axes.map((axes) => axes.includes(wanted.axis));
    tests.push((i) => decides[core.axis[i]]);
  }
  for (const { model, context, outcome } of wanted.conditions) {
    const credits = data.credits(model, context);
    tests.push((i) => outcomeOf(credits?.[i]) === outcome);
  }
  if (wanted.disagree) tests.push(disagreement(data, wanted.context));
  return tests;
}

const creditsUnder = (data, context) => data.models.map((_, model) => data.credits(model, context)).filter(Boolean);

/** Whether one model is right and another wrong. */
function disagreement(data, context) {
  const columns = creditsUnder(data, context);
  return (i) => {
    let right = false;
    let wrong = false;
    for (const column of columns) {
      if (column[i] >= NOT_ASKED) continue;
      right ||= column[i] > TIE;
      wrong ||= column[i] < TIE;
    }
    return right && wrong;
  };
}

function sortPairs(data, wanted, kept) {
  if (wanted.sort === "suite") return kept;
  const columns = creditsUnder(data, wanted.context);
  const means = new Float32Array(data.count).fill(NaN);
  for (const i of kept) {
    let sum = 0;
    let judged = 0;
    for (const column of columns) {
      if (column[i] < NOT_ASKED) {
        sum += column[i];
        judged += 1;
      }
    }
    if (judged) means[i] = sum / judged;
  }
  const keys = {
    hardest: (i) => means[i],
    easiest: (i) => -means[i],
    split: (i) => Math.abs(means[i] - TIE),
  };
  const key = keys[wanted.sort];
  const last = (i) => (Number.isNaN(means[i]) ? Infinity : key(i));
  return kept.slice().sort((one, two) => last(one) - last(two) || one - two);
}
