// The address of a view: `#pair=ID` opens a pair, `#pairs&category=…` a list. Written so that a raw id can be typed.

const decode = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a bare % in an id that was typed by hand
  }
};

/** What the hash asks for: `{ view, pair, wanted }`, or null where it names a place in the overview. */
function readAddress(hash, data) {
  const items = hash
    .replace(/^#/, "")
    .split("&")
    .map((item) => {
      const at = item.indexOf("=");
      return at < 0 ? [item, ""] : [item.slice(0, at), decode(item.slice(at + 1))];
    });
  if (items[0][0] !== "pairs" && items[0][0] !== "pair") return null;
  const wanted = { ...EMPTY, context: defaultContext(data), conditions: [] };
  let pair = null;
  for (const [name, value] of items) {
    if (name === "pair") pair = value;
    else if (name === "q") wanted.query = value;
    else if (name === "in") wanted.scope = value === "all" ? "all" : "answers";
    else if (["category", "axis", "user"].includes(name)) wanted[name] = value;
    else if (name === "context" && data.contexts.includes(value)) wanted.context = value;
    else if (name === "sort" && ["hardest", "easiest", "split"].includes(value)) wanted.sort = value;
    else if (name === "disagree") wanted.disagree = true;
    else if (name === "is") wanted.conditions.push(...readCondition(value, data));
  }
  return { pair, wanted };
}

function readCondition(value, data) {
  const first = value.indexOf(".");
  const last = value.lastIndexOf(".");
  const model = Number(value.slice(0, first));
  const condition = { model, context: value.slice(first + 1, last), outcome: value.slice(last + 1) };
  return data.models[model] && data.contexts.includes(condition.context) ? [condition] : [];
}

function writeAddress(pair, wanted, data) {
  const items = [pair === null ? "pairs" : `pair=${encodeURIComponent(pair)}`];
  if (wanted.query) items.push(`q=${encodeURIComponent(wanted.query)}`);
  if (wanted.scope !== "answers") items.push(`in=${wanted.scope}`);
  for (const name of ["category", "axis", "user"]) {
    if (wanted[name] !== null) items.push(`${name}=${encodeURIComponent(wanted[name])}`);
  }
  if (wanted.context !== defaultContext(data)) items.push(`context=${encodeURIComponent(wanted.context)}`);
  if (wanted.sort !== "suite") items.push(`sort=${wanted.sort}`);
  if (wanted.disagree) items.push("disagree");
  for (const { model, context, outcome } of wanted.conditions) {
    items.push(`is=${model}.${encodeURIComponent(context)}.${outcome}`);
  }
  return `#${items.join("&")}`;
}

/** The user's own posts where a model was shown them, else the first context. */
const defaultContext = (data) => (data.contexts.includes("profile") ? "profile" : data.contexts[0]);
