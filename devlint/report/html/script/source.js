// The code of a file, each line beside what it cost.
const AROUND = 4;  // so many lines around a costly one are shown in a long file
const LONG = 400;
const source = { table: 0, file: -1 };
const isTimed = () => Boolean(tables[source.table]?.timed);
const columns = () => isTimed() ? 5 : 4;

const coloured = (line) => line.map((piece) => (
  piece[0] === " " ? piece.slice(1) : make("span", { className: piece[0] }, piece.slice(1))
));

function fileButton(file, { bytes, seconds }) {
  const words = make("small", {}, joined([bytes && size(bytes), blockedFor(seconds)]));
  const button = make("button", { type: "button", role: "tab" }, fileName(file), words);
  button.addEventListener("click", () => showFile(file));
  button.dataset.file = file;
  return button;
}

// List the files, the costliest first, which is returned.
function fillFiles() {
  const sums = files.map((_, index) => {
    const found = lines.filter((line) => line.table === source.table && line.file === index);
    const [bytes, seconds] = ["bytes", "seconds"].map((name) => sum(found.map((line) => most(line[name]))));
    return { index, bytes, seconds };
  });
  sums.sort((a, b) => b.seconds - a.seconds || b.bytes - a.bytes || a.index - b.index);
  byId("files").replaceChildren(...sums.map((each) => fileButton(each.index, each)));
  return sums[0]?.index ?? -1;
}

function costCell(kind, value, highest, show) {
  const heat = value && highest ? `--heat: ${(Math.sqrt(most(value) / highest) * 62).toFixed(1)}%` : "";
  return make("td", { className: `number ${kind}`, style: heat }, value ? unlessZero(value, show) : "");
}

// Makes the rows of one file; `highest` has the greatest figures of it.
function rowMaker(file, costs, target) {
  const found = [...costs.values()];
  const highest = {
    bytes: greatest(found.map((line) => most(line.bytes))), seconds: greatest(found.map((line) => most(line.seconds))),
  };
  return (row, line) => {
    const cost = costs.get(row);
    const names = joined([cost && "costly", row === target && "target"], " ");
    const element = make("tr", { className: names },
      make("td", { className: "number" }, cost ? unlessZero(cost.calls, number) : ""),
      costCell("bytes", cost?.bytes, highest.bytes, size),
      ...(isTimed() ? [costCell("blocked", cost?.seconds, highest.seconds, duration)] : []),
      make("td", { className: "row-number" }, String(row)), make("td", { className: "text" }, ...coloured(line)));
    element.dataset.line = row;
    if (cost) {
      element.title = "Click for what happened here";
      element.addEventListener("click", () => toggleDetails(element, file, row));
    }
    return element;
  };
}

function toggleDetails(element, file, line) {
  if (element.nextSibling?.classList?.contains("details")) {
    element.nextSibling.remove();
    return;
  }
  const found = rows.filter((row) => row.table === source.table && row.file === file && row.line === line);
  const words = found.map((row) => make("div", {}, make("b", {}, row.direction), " ", joined([
    `${between(row.calls, number)} calls`, unlessZero(row.bytes, size), blockedFor(row.seconds), row.how,
    row.via && `via ${row.via}`,
  ]), ...(row.code ? [make("br"), make("code", {}, row.code)] : [])));
  element.after(make("tr", { className: "details" }, make("td", { colSpan: columns() }, ...words)));
}

function foldedRow(folded, row) {
  const text = `\u22ee  ${number(folded.length)} lines without cost`;
  const element = make("tr", { className: "fold" }, make("td", { colSpan: columns() }, text));
  element.addEventListener("click", () => element.replaceWith(...folded.map(([index, line]) => row(index, line))));
  return element;
}

// The rows of a chunk of lines; of a long one those far from any cost are folded.
function chunkRows(start, chunk, wanted, row) {
  if (chunk.length <= LONG || !wanted.length) return chunk.map((line, index) => row(start + index, line));
  const around = Array.from({ length: 2 * AROUND + 1 }, (_, index) => index - AROUND);
  const near = new Set(wanted.flatMap((line) => around.map((distance) => line + distance)));
  const found = [];
  let folded = [];
  const unfold = () => {
    found.push(...(folded.length > 3 ? [foldedRow(folded, row)] : folded.map(([index, line]) => row(index, line))));
    folded = [];
  };
  chunk.forEach((line, index) => {
    if (!near.has(start + index)) return folded.push([start + index, line]);
    unfold();
    return found.push(row(start + index, line));
  });
  unfold();
  return found;
}

function codeRows(file, costs, target) {
  const row = rowMaker(file, costs, target), chunks = files[file]?.chunks ?? [];
  const wanted = [...costs.keys(), ...(target ? [target] : [])];
  const found = [], known = new Set();
  let last = 0;
  for (const [start, chunk] of chunks) {
    if (start > last + 1) found.push(make("tr", { className: "gap" }, make("td", { colSpan: columns() }, "...")));
    found.push(...chunkRows(start, chunk, wanted, row));
    chunk.forEach((_, index) => known.add(start + index));
    last = start + chunk.length - 1;
  }
  const missing = [...costs.keys()].filter((line) => !known.has(line));
  return [...found, ...missing.map((line) => row(line, [" (the code of this line is not in the record)"]))];
}

function showFile(file, target = 0) {
  source.file = file;
  for (const button of byId("files").children) button.ariaSelected = String(Number(button.dataset.file) === file);
  const here = lines.filter((line) => line.table === source.table && line.file === file);
  const costs = new Map(here.map((line) => [line.line, line]));
  const names = ["calls", "bytes", ...(isTimed() ? ["blocked"] : []), "", ""];
  const head = make("tr", {}, ...names.map((name) => make("th", { className: name && "number" }, name)));
  const body = make("tbody", {}, ...codeRows(file, costs, target));
  byId("code").replaceChildren(make("table", {}, make("thead", {}, head), body));
  const costliest = here[0]?.line;  // as the data is sorted
  const wanted = body.querySelector(`tr[data-line="${target || costliest}"]`);
  if (wanted) byId("code").scrollTop = Math.max(0, wanted.offsetTop - byId("code").clientHeight / 3);
}

function openLine(table, file, line) {
  source.table = table;
  byId("source-table").value = String(table);
  explainSource();
  fillFiles();
  showFile(file, line);
  byId("source").scrollIntoView();
}

function explainSource() {
  const { unit } = tables[source.table] ?? {};
  byId("source-hint").textContent = joined([
    unit && `The figures are ${unit}.`,
    "The stronger the colour, the more bytes, or the longer the host was blocked.",
    "Click a line for what happened there.",
  ], " ");
}

function prepareSource() {
  if (!files.length) {
    byId("source-hint").textContent = "Nothing happened at a line of code that is known.";
    return;
  }
  const select = byId("source-table");
  select.append(...tables.map(({ title }, index) => option(index, title)));
  select.addEventListener("change", () => {
    source.table = Number(select.value);
    explainSource();
    showFile(fillFiles());
  });
  byId("source-controls").hidden = !tables.length;
  byId("source-view").hidden = false;
  explainSource();
  showFile(fillFiles());
}
