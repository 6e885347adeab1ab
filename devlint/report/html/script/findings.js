// The findings that are not shown in full, and where the links of the others lead.
function problemRow({ severity, code, name, place: where, message }) {
  return make("tr", {},
    make("td", {}, severity), make("td", {}, make("a", { href: `#rule-${code}`, title: name }, code)),
    make("td", { className: "mono" }, where), make("td", {}, message));
}

function offerFurther() {
  const box = byId("further"), button = make("button", { type: "button" }, `Show ${number(problems.length)} more`);
  button.addEventListener("click", () => {
    const body = make("tbody", {}, ...problems.map(problemRow));
    box.replaceChildren(make("div", { className: "scroll" }, make("table", {}, body)));
  });
  box.append(button);
  box.hidden = false;
}

function openRule() {
  if (location.hash.startsWith("#rule-")) byId(location.hash.slice(1))?.setAttribute("open", "");
}

function prepareFindings() {
  if (problems.length) offerFurther();
  for (const link of document.querySelectorAll("a.place")) {
    const file = files.findIndex(({ name }) => name === link.dataset.file);
    link.addEventListener("click", (event) => {
      event.preventDefault();
      openLine(source.table, file, Number(link.dataset.row));
    });
  }
  addEventListener("hashchange", openRule);
  openRule();
}
