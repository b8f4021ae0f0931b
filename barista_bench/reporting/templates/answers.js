// Answers of two models side by side, with the words that only one of them has marked.
const VERDICT = { hit: ["✓", "correct"], miss: ["○", "missed"], wrong: ["✗", "wrong"] };
const MOST_WORDS = 600; // of each text: comparing takes the product of both

// The pieces of `first` and whether each is also in `second`, in order: the longest common subsequence of words.
function compared(first, second) {
  const [a, b] = [first, second].map((given) => given.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? []);
  if (a.length > MOST_WORDS || b.length > MOST_WORDS) return null;
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const pieces = [];
  for (let i = 0, j = 0; i < a.length; i += 1) {
    while (j < b.length && a[i] !== b[j] && common[i][j + 1] >= common[i + 1][j] && common[i][j + 1] === common[i][j]) j += 1;
    const same = j < b.length && a[i] === b[j];
    if (same) j += 1;
    pieces.push([a[i], same]);
  }
  return pieces;
}

function answerText(own, other) {
  const pieces = own !== null && other !== null && other !== undefined ? compared(own, other) : null;
  if (!pieces || pieces.every(([, same]) => !same)) return text("pre", own === null ? "(none)" : own || "(empty)", { tabindex: 0 });
  return node("pre", { tabindex: 0 }, ...pieces.map(([piece, same]) => (same || !piece.trim() ? piece : text("mark", piece))));
}

const opened = (title, words, open = false) => (words ? folded(title, () => text("pre", words, { tabindex: 0 }), open) : null);

function pairs(title, list) {
  if (!list?.length) return null;
  return [text("h4", title), node("dl", { class: "pairs" }, ...list.map(([name, value]) => node("div", {}, text("dt", name), text("dd", value))))];
}

function explanation(rows) {
  if (!rows?.length) return null;
  const items = rows.map(({ verdict, text: words }) => node("li", { class: verdict },
    text("span", VERDICT[verdict][0], { class: "mark", "aria-hidden": "true" }), text("span", VERDICT[verdict][1], { class: "word" }), text("span", words)));
  return [text("h4", "Why it scored as it did"), node("ul", { class: "rows" }, ...items)];
}

function card(task, { place, answer, answers }, other, chosen) {
  const tabs = answers.length > 1 ? node("div", { class: "tabs" }, ...answers.map((one) => node("button", {
    type: "button", "aria-pressed": String(one === answer), click: () => chosen(place, one.run),
  }, `run ${one.run}`))) : null;
  if (!answer) return node("section", { class: "card" }, text("h3", task.labels[place]), text("p", `${STATUS.not_run} not run`, { class: "state" }));
  const scored = answer.scores.some((score) => score !== null);
  const scores = task.scores.map((name, at) => text("span", `${words(name)} ${short(answer.scores[at])}`));
  return node("section", { class: "card" }, text("h3", task.labels[place]), tabs,
    node("p", { class: "state" }, mark(answer.status), ` ${words(answer.status)}`),
    answer.error ? text("p", answer.error, { class: "error" }) : null,
    node("p", { class: "scores" }, ...(scored ? scores : ["not scored"])),
    text("h4", "Answer"), answerText(answer.text ?? null, other?.text),
    explanation(answer.rows), pairs("Judges", answer.verdicts),
    ...(answer.earlier ?? []).map((words, step) => opened(`Answer ${step + 1}, before the last question`, words || "(empty)")),
    opened("As it was read", answer.parsed), opened("Reasoning", answer.reasoning),
    text("p", answer.facts.map((fact) => fact.join(" ")).join(" · "), { class: "note" }));
}
