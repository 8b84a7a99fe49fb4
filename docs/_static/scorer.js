// What a search shows first: the reference's names, then guides; decisions and internals are for those who look for them.
// Sphinx puts this into searchtools.js in the place of its own `Scorer`.
var Scorer = {
  objNameMatch: 30,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  folders: { "start/": 10, "guides/": 10, "reference/": 5, "examples/": 5, "internals/": -5, "testing/": -5, "decisions/": -20 },
  score: (result) => {
    const [docname, , , , score] = result;
    const folder = Object.keys(Scorer.folders).find((name) => docname.startsWith(name));
    return score + (folder === undefined ? 0 : Scorer.folders[folder]);
  },
};
