// What the search ranks first: a page whose title has the words that were typed, a lesson above all.
var Scorer = {
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,

  score([page, title, anchor, , score]) {
    if (anchor || page.startsWith("solutions/")) return score;
    const parts = (text) => text.toLowerCase().split(/[^\p{L}\p{N}@_]+/u).filter(Boolean);
    const typed = parts(new URLSearchParams(location.search).get("q") ?? "");
    const has = (word) => parts(title).some((own) => own.startsWith(word) || word === `${own}s`);
    const named = typed.filter(has).length / typed.length;
    return score + (page.startsWith("lessons/") ? 40 : 15) * (named || 0);
  },
};
