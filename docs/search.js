/* The order of search results: guides, gallery, reference, and last what developers read. */
const DEVELOPERS = /^(changelog|contributing|develop|results|benchmark\w*|reproduction.*|index_format)$/;

var Scorer = {
  score: (result) => {
    const [page, , , description, score] = result;
    // Without a server there are no excerpts: show the beginning of the page.
    if (!description && location.protocol === "file:" && typeof pageSummaries !== "undefined")
      result[3] = pageSummaries[page] || null;
    if (DEVELOPERS.test(page)) return score - 40;
    if (page.startsWith("gallery/")) return score + 10;
    return page.includes("/") ? score : score + 20;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

/* A page that is found by its index entry is listed once, and opened at its top. Excerpts are taken from the text of a
   page, not from its navigation. */
if (typeof Search !== "undefined") {
  const find = Search._performSearch;
  Search._performSearch = (...query) => {
    const results = find(...query);
    const byEntry = results.filter((result) => result[2].startsWith("#index-"));
    const pages = new Set(byEntry.map((result) => result[0]));
    byEntry.forEach((result) => (result[2] = ""));
    return results.filter(
      (result) => byEntry.includes(result) || result[2] !== "" || !pages.has(result[0]),
    );
  };
  const textOf = Search.htmlToText;
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const other = ".bd-header-article, .prev-next-footer, .bd-footer-article, .sphx-glr-download-link-note, h1";
    page.querySelectorAll(other).forEach((element) => element.remove());
    return textOf(page.documentElement.outerHTML, anchor);
  };
}
