// The table of all rows, which sorts and filters.
const CHUNK = 100;
const place = (row) => row.file < 0 ? NOWHERE : `${fileName(row.file)}:${row.line}`;
const COLUMNS = [
  { title: "where", key: (row) => `${fileName(row.file)}:${String(row.line).padStart(7, "0")}`, cell: placeCell },
  { title: "phase", key: (row) => row.table, cell: phaseCell },
  { title: "direction", key: (row) => row.direction, cell: directionCell },
  { title: "calls", numeric: true, key: (row) => most(row.calls), cell: (row) => figure(between(row.calls, number)) },
  { title: "bytes", numeric: true, key: (row) => most(row.bytes), cell: (row) => figure(unlessZero(row.bytes, size)) },
  {
    title: "blocked", numeric: true, key: (row) => most(row.seconds),
    cell: (row) => figure(unlessZero(row.seconds, duration)),
  },
  {
    title: "copying", numeric: true, key: (row) => most(row.copying ?? 0),
    cell: (row) => figure(unlessZero(row.copying ?? 0, duration)),
  },
  { title: "how", key: (row) => row.how, cell: (row) => make("td", {}, row.how) },
  { title: "code", key: (row) => row.code, cell: codeCell },
].filter(({ title }) => title !== "blocked" || tables.some((table) => table.timed))
  .filter(({ title }) => title !== "copying" || rows.some((row) => row.copying));
const shown = { sort: null, falling: true, count: CHUNK, rows: [] };

function figure(text) {
  return make("td", { className: "number" }, text);
}

function placeCell(row) {
  if (row.file < 0) return make("td", { className: "where" }, place(row));
  const link = make("a", { href: "#source" }, place(row));
  link.addEventListener("click", (event) => {
    event.preventDefault();
    openLine(row.table, row.file, row.line);
  });
  return make("td", { className: "where" }, link);
}

function phaseCell(row) {
  return make("td", { className: "where" }, tables[row.table].title);
}

function directionCell(row) {
  return make("td", { title: DIRECTIONS[row.direction] ?? "" }, row.direction);
}

function codeCell(row) {
  const via = row.via ? [make("div", { className: "hint" }, `via ${row.via}`)] : [];
  return make("td", { className: "mono" }, row.code, ...via);
}

function words(row) {  // what the filter looks in
  row.words ??= joined([
    place(row), row.direction, row.how, row.via, row.code, tables[row.table].title,
  ], " ").toLowerCase();
  return row.words;
}

function chosenRows() {
  const wanted = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const phase = byId("phase").value, direction = byId("direction").value;
  const found = rows.filter((row) => (
    (phase === "" || row.table === Number(phase)) && (direction === "" || row.direction === direction)
      && wanted.every((word) => words(row).includes(word))
  ));
  if (shown.sort === null) return found;
  const { key } = shown.sort, sign = shown.falling ? -1 : 1;
  const keyed = found.map((row) => [key(row), row]);
  keyed.sort(([a], [b]) => sign * (a < b ? -1 : a > b ? 1 : 0));
  return keyed.map(([, row]) => row);
}

function describeTable() {
  const all = shown.rows.length, count = Math.min(shown.count, all);
  const filtered = all < rows.length ? ` (${number(rows.length)} without the filter)` : "";
  byId("count").textContent = `${number(count)} of ${number(all)}${filtered}`;
  byId("more").hidden = shown.count >= all;
  [...byId("rows").tHead.rows[0].cells].forEach((head, index) => {
    if (COLUMNS[index] !== shown.sort) head.removeAttribute("aria-sort");
    else head.setAttribute("aria-sort", shown.falling ? "descending" : "ascending");
  });
}

function extendTable() {
  const body = byId("rows").tBodies[0], more = shown.rows.slice(body.rows.length, shown.count);
  body.append(...more.map((row) => make("tr", {}, ...COLUMNS.map((column) => column.cell(row)))));
  describeTable();
}

function fillTable() {
  shown.rows = chosenRows();
  shown.count = CHUNK;
  byId("rows").tBodies[0].replaceChildren();
  extendTable();
}

function columnHead(column) {
  const button = make("button", { type: "button" }, column.title);
  button.addEventListener("click", () => {
    shown.falling = shown.sort === column ? !shown.falling : Boolean(column.numeric);
    shown.sort = column;
    fillTable();
  });
  return make("th", { scope: "col", className: column.numeric ? "number" : "" }, button);
}

function prepareTable() {
  if (!rows.length) {
    byId("table-hint").textContent = "Nothing was copied between the host and a device, and nothing was waited for.";
    byId("table").querySelectorAll(".controls, .scroll").forEach((element) => { element.hidden = true; });
    return;
  }
  byId("rows").tHead.rows[0].append(...COLUMNS.map(columnHead));
  const directions = Object.keys(DIRECTIONS).filter((name) => rows.some((row) => row.direction === name));
  byId("phase").append(option("", "all"), ...tables.map(({ title }, index) => option(index, title)));
  byId("direction").append(option("", "all"), ...directions.map((name) => option(name, name)));
  byId("filter").addEventListener("input", fillTable);
  for (const id of ["phase", "direction"]) byId(id).addEventListener("change", fillTable);
  byId("more").addEventListener("click", () => {
    shown.count += 5 * CHUNK;
    extendTable();
  });
  const words = directions.map((name) => `${name}: ${DIRECTIONS[name]}`);
  if (rows.some((row) => row.copying)) words.push("copying: how long the device took");
  byId("table-hint").textContent = words.join("; ");
  fillTable();
}
