"use strict";
// What is interactive in the page: the theme, the charts of the steps, the code with its costs, the table.
// Text of the record only ever becomes a text node or the data of a chart, never markup.
const devlint = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  for (const row of data.rows) row.splice(4, 2, data.texts[row[4]], data.texts[row[5]]);
  const byId = (id) => document.getElementById(id);
  const DIRECTIONS = {
    H2D: "to a device", D2H: "from a device", D2D: "between devices", sync: "the host waited for the device",
    pin: "copied to pinned memory", call: "a call that costs by itself",
  };

  // Elements -----------------------------------------------------------------------------------------------------

  function make(tag, fields = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(fields)) {
      if (name in element && name !== "style") element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  function choice(options, chosen, pick) {
    const group = make("span", { className: "choice", role: "group" });
    for (const [value, title] of options) {
      const button = make("button", { type: "button", textContent: title, ariaPressed: String(value === chosen) });
      button.dataset.value = value;
      button.addEventListener("click", () => {
        for (const other of group.children) other.ariaPressed = String(other === button);
        pick(value);
      });
      group.append(button);
    }
    return group;
  }

  // Figures, as devlint/report/audit/units.py writes them ----------------------------------------------------------

  function fixed(value, digits) {  // as Python rounds: a tie goes to the even digit
    const scaled = value * 10 ** digits, tie = Number.isInteger(value * 2 ** (digits + 1)) && Math.abs(scaled % 1) === 0.5;
    if (!tie) return value.toFixed(digits);
    const low = Math.floor(scaled);
    return ((low % 2 ? low + 1 : low) / 10 ** digits).toFixed(digits);
  }
  const three = (value) => fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
  const grouped = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ",");

  function number(value) {
    if (Number.isInteger(value)) return grouped(BigInt(value).toString());
    if (value >= 100) return grouped(fixed(value, 0));
    if (value < 0.01) return "<0.01";
    return value < 10 ? fixed(value, 2).replace(/\.?0+$/, "") : fixed(value, 1);
  }

  function size(value) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (value >= 1023.5 && unit < units.length - 1) { value /= 1024; unit += 1; }
    return `${unit ? three(value) : number(value)} ${units[unit]}`;
  }

  function duration(seconds) {
    if (seconds >= 7200) return `${fixed(seconds / 3600, 1)} h`;
    if (seconds >= 120) return `${fixed(seconds / 60, 0)} min`;
    for (const [unit, scale] of [["us", 1e-6], ["ms", 1e-3], ["s", 1]]) {
      const value = seconds / scale;
      if (value >= 999.5 && unit !== "s") continue;
      if (unit === "us") return value >= 1 || value === 0 ? `${fixed(value, 0)} us` : "<1 us";
      return `${three(value)} ${unit}`;
    }
  }

  function between(value, show) {  // a number, or the least and the greatest
    if (value === null) return "";
    if (!Array.isArray(value)) return show(value);
    const [low, high] = value.map(show);
    if (low === high) return high;
    const [lowNumber, lowUnit = ""] = low.split(" "), highUnit = high.split(" ")[1] ?? "";
    return lowUnit === highUnit ? `${lowNumber}-${high}` : `${low}-${high}`;
  }
  const most = (value) => value === null ? 0 : Array.isArray(value) ? value[1] : value;
  const shownIf = (value, show) => most(value) ? between(value, show) : "";

  // The theme ------------------------------------------------------------------------------------------------------

  const THEMES = ["system", "light", "dark"];
  const redraw = [];
  function setTheme(theme) {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    byId("theme").textContent = `Theme: ${theme}`;
    redraw.forEach((draw) => draw());
  }
  function remember(theme) {
    try { localStorage.setItem("devlint-theme", theme); } catch { /* a browser may keep nothing for files */ }
  }
  function remembered() {
    try { return localStorage.getItem("devlint-theme"); } catch { return null; }
  }
  let theme = THEMES.includes(remembered()) ? remembered() : "system";
  byId("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    remember(theme);
    setTheme(theme);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw.forEach((draw) => draw()));
  setTheme(theme);

  // The steps ------------------------------------------------------------------------------------------------------

  const COLORS = {
    H2D: ["#0072b2", "#56b4e9"], D2H: ["#d98a00", "#f0b042"], D2D: ["#a8558c", "#d893bd"], sync: ["#c4400c", "#ff8259"],
    pin: ["#00805e", "#35c79f"], call: ["#6e7781", "#9aa4af"], "waiting for the loader": ["#a8558c", "#d893bd"],
    blocked: ["#c4400c", "#ff8259"], "rest of the step": ["#c3cbd3", "#3a434d"],
  };
  const MEASURES = {
    bytes: { title: "Bytes", show: size, of: (flow) => flow[1] },
    calls: { title: "Calls", show: number, of: (flow) => flow[0] },
    blocked: { title: "Host blocked", show: duration, of: (flow) => flow[2] ?? 0 },
    time: { title: "Step time", show: duration },
  };
  const PHASES = { train: "Training", eval: "Evaluation" };
  const steps = { measure: "bytes", phase: "train", results: [] };

  function valuesOf(step, measure) {
    const [, , seconds, waited, flows] = step;
    if (measure !== "time") return Object.entries(flows).map(([what, flow]) => [what, MEASURES[measure].of(flow)]);
    const blocked = Object.values(flows).reduce((sum, flow) => sum + (flow[2] ?? 0), 0);
    const waiting = Math.min(waited ?? 0, seconds ?? 0), stuck = Math.min(blocked, (seconds ?? 0) - waiting);
    return [["waiting for the loader", waiting], ["blocked", stuck], ["rest of the step", (seconds ?? 0) - waiting - stuck]];
  }

  function drawnSteps(process) {
    return process[1].filter((step) => step[0] === steps.phase);
  }

  function theming() {
    const style = getComputedStyle(document.body), soft = getComputedStyle(byId("step-hint")).color;
    const line = getComputedStyle(document.querySelector(".top")).borderBottomColor;
    return {
      background: null, font: style.fontFamily,
      axis: { labelColor: soft, titleColor: soft, tickColor: line, domainColor: line, gridColor: line, labelFontSize: 11, titleFontWeight: "normal" },
      legend: { labelColor: style.color, symbolType: "square", labelFontSize: 12, labelLimit: 240 },
      view: { stroke: null },
    };
  }

  function isDark() {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function highest() {  // of all processes, whose charts share their scale
    const sums = data.history.processes.flatMap((process) => drawnSteps(process).map((step) => valuesOf(step, steps.measure).reduce((sum, [, value]) => sum + value, 0)));
    return sums.reduce((most, sum) => Math.max(most, sum), 0);
  }

  function drawChart(process, greatest, several) {
    const found = drawnSteps(process), values = [], names = Object.keys(COLORS);
    found.forEach((step, index) => {
      const next = found[index + 1]?.[1] ?? step[1] + (index ? step[1] - found[index - 1][1] : 1);
      for (const [what, value] of valuesOf(step, steps.measure)) {
        if (value) values.push({ index, from: step[1] - 0.5, to: next - 0.5, what, value, order: names.indexOf(what) });
      }
    });
    const plot = make("div", { className: "plot" });
    const chart = make("div", { className: "chart" }, plot);
    if (several) chart.prepend(make("h3", { textContent: process[0] }));
    byId("charts").append(chart);
    const domain = names.filter((name) => values.some((value) => value.what === name));
    const spec = structuredClone(data.chart);
    spec.data.values = values;
    if (several) spec.height = 100;
    if (greatest) spec.encoding.y.scale = { domain: [0, greatest] };
    spec.encoding.x.title = `${PHASES[steps.phase].toLowerCase()} step`;
    spec.encoding.color.scale = { domain, range: domain.map((name) => COLORS[name][isDark() ? 1 : 0]) };
    if (steps.measure === "bytes" && greatest) spec.encoding.y.axis.values = binaryTicks(greatest);
    const options = {
      mode: "vega-lite", actions: false, renderer: "canvas", config: theming(), logLevel: 1,  // 1: errors alone
      tooltip: (handler, event, item, value) => tip(event, value && found[item.datum.index]),
      expressionFunctions: { amount: (value) => MEASURES[steps.measure].show(value) },
    };
    return vegaEmbed(plot, spec, options).then((result) => steps.results.push(result));
  }

  function binaryTicks(greatest) {  // round figures in KiB or MiB, which are none in powers of ten
    const unit = 1024 ** Math.floor(Math.log(greatest) / Math.log(1024)), rough = greatest / unit / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const each = unit * power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough);
    return Array.from({ length: Math.floor(greatest / each) + 1 }, (_, index) => index * each);
  }

  function tip(event, step) {
    const element = byId("tip");
    element.hidden = !step;
    if (!step) return;
    const [phase, nth, seconds, waited, flows] = step;
    const lines = [`${PHASES[phase]} step ${number(nth)}${seconds === null ? "" : `: ${duration(seconds)}`}`];
    if (waited) lines.push(`waiting for the loader  ${duration(waited)}`);
    for (const [what, [calls, bytes, blocked]] of Object.entries(flows)) {
      lines.push([what, number(calls) + (calls === 1 ? " call" : " calls"), bytes ? size(bytes) : "", blocked ? `${duration(blocked)} blocked` : ""].filter(Boolean).join("  "));
    }
    element.textContent = lines.join("\n");
    const { width, height } = element.getBoundingClientRect();
    element.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
    element.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - height - 8))}px`;
  }

  function drawSteps() {
    steps.results.splice(0).forEach((result) => result.finalize());
    byId("charts").replaceChildren();
    const greatest = highest(), several = data.history.processes.length > 1;
    return Promise.all(data.history.processes.map((process) => drawChart(process, greatest, several)));
  }

  function prepareSteps() {
    const { processes, recorded, every, left_out: leftOut } = data.history;
    const hint = byId("step-hint");
    if (!processes.length) {
      hint.textContent = recorded || !data.tables.some(([, , phase]) => phase in PHASES)
        ? "No step of a training loop was seen."
        : "This record was made by an older devlint, which did not keep the steps one by one.";
      return false;
    }
    const all = processes.flatMap(([, found]) => found);
    const phases = Object.keys(PHASES).filter((phase) => all.some((step) => step[0] === phase));
    const timed = all.some((step) => step[2] !== null);
    const measures = Object.keys(MEASURES).filter((name) => timed || (name !== "blocked" && name !== "time"));
    steps.phase = phases[0];
    if (!all.some((step) => Object.keys(step[4]).length) && timed) steps.measure = "time";
    byId("step-controls").append(
      choice(measures.map((name) => [name, MEASURES[name].title]), steps.measure, (name) => { steps.measure = name; drawSteps(); }),
      choice(phases.map((name) => [name, PHASES[name]]), steps.phase, (name) => { steps.phase = name; drawSteps(); }),
    );
    byId("step-controls").hidden = false;
    const notes = ["One bar for each step. Drag to move, Shift and the wheel to zoom, double-click for all."];
    if (every > 1 || all.some((step, index) => index && all[index - 1][0] === step[0] && step[1] - all[index - 1][1] > 1)) {
      notes.push("Of this long run some steps are shown, evenly spread.");
    }
    if (leftOut) notes.push(`${number(leftOut)} more processes are not drawn; the table has them all.`);
    if (!all.some((step) => Object.keys(step[4]).length)) notes.push("Nothing was copied and nothing was waited for in any step.");
    hint.textContent = notes.join(" ");
    return true;
  }

  // The code -------------------------------------------------------------------------------------------------------

  const AROUND = 4;
  const source = { table: 0, file: -1 };
  const fileName = (file) => file < 0 ? "in no line of Python" : data.files[file][0];

  function code(line) {
    return line.map((piece) => piece[0] === " " ? piece.slice(1) : make("span", { className: piece[0] }, piece.slice(1)));
  }

  function costsOf(table, file) {
    return new Map(data.lines.filter((line) => line[0] === table && line[1] === file).map((line) => [line[2], line]));
  }

  function fillFiles() {
    const list = byId("files");
    list.replaceChildren();
    const sums = data.files.map(() => [0, 0]);
    for (const [table, file, , , bytes, seconds] of data.lines) {
      if (table === source.table && file >= 0) { sums[file][0] += most(bytes); sums[file][1] += most(seconds); }
    }
    const order = data.files.map((_, file) => file).sort((a, b) => sums[b][1] - sums[a][1] || sums[b][0] - sums[a][0] || a - b);
    for (const file of order) {
      const [bytes, seconds] = sums[file];
      const words = [bytes ? size(bytes) : "", seconds ? `${duration(seconds)} blocked` : ""].filter(Boolean).join(", ");
      const button = make("button", { type: "button", role: "tab", ariaSelected: String(file === source.file) }, fileName(file), make("small", {}, words));
      button.addEventListener("click", () => showFile(file));
      button.dataset.file = file;
      list.append(button);
    }
    return order[0];
  }

  function heat(value, greatest) {
    return greatest ? `--heat: ${(Math.sqrt(most(value) / greatest) * 62).toFixed(1)}%` : "";
  }

  function showFile(file, target = 0) {
    source.file = file;
    for (const button of byId("files").children) button.ariaSelected = String(Number(button.dataset.file) === file);
    const costs = costsOf(source.table, file), found = [...costs.values()];
    const greatest = { bytes: Math.max(0, ...found.map((line) => most(line[4]))), seconds: Math.max(0, ...found.map((line) => most(line[5]))) };
    const timed = data.tables[source.table]?.[3];
    const head = make("tr", {}, ...[["calls", "number"], ["bytes", "number"], ...(timed ? [["blocked", "number"]] : []), ["", ""], ["", ""]].map(([text, name]) => make("th", { className: name }, text)));
    const body = make("tbody");
    const chunks = data.files[file]?.[1] ?? [];
    const known = new Set(chunks.flatMap(([start, lines]) => lines.map((_, index) => start + index)));
    const near = (row) => { for (let other = row - AROUND; other <= row + AROUND; other += 1) if (costs.has(other) || other === target) return true; return false; };
    const columns = timed ? 5 : 4;
    const row = (number_, line) => lineRow(number_, line, costs.get(number_), greatest, timed, file, columns, number_ === target);
    let last = 0;
    for (const [start, lines] of chunks) {
      if (start > last + 1 && (last || start > 1)) body.append(make("tr", { className: "gap" }, make("td", { colSpan: columns }, "...")));
      const short = lines.length <= 400 || !found.length;
      let folded = [];
      const fold = () => {
        if (folded.length > 3 && !short) body.append(foldRow(folded, columns, row));
        else body.append(...folded.map(([index, line]) => row(index, line)));
        folded = [];
      };
      lines.forEach((line, index) => {
        if (short || near(start + index)) { fold(); body.append(row(start + index, line)); }
        else folded.push([start + index, line]);
      });
      fold();
      last = start + lines.length - 1;
    }
    for (const line of found) if (!known.has(line[2])) body.append(row(line[2], [" (the code of this line is not in the record)"]));
    byId("code").replaceChildren(make("table", {}, make("thead", {}, head), body));
    const wanted = body.querySelector("tr.target") ?? [...body.querySelectorAll("tr.costly")].sort((a, b) => b.dataset.weight - a.dataset.weight)[0];
    if (wanted) byId("code").scrollTop = Math.max(0, wanted.offsetTop - byId("code").clientHeight / 3);
  }

  function foldRow(folded, columns, row) {
    const element = make("tr", { className: "fold" }, make("td", { colSpan: columns }, `\u22ee  ${number(folded.length)} lines without cost`));
    element.addEventListener("click", () => element.replaceWith(...folded.map(([index, line]) => row(index, line))));
    return element;
  }

  function lineRow(row, line, cost, greatest, timed, file, columns, isTarget) {
    const cells = [make("td", { className: "number" }, cost ? shownIf(cost[3], number) : "")];
    cells.push(make("td", { className: "number bytes", style: cost ? heat(cost[4], greatest.bytes) : "" }, cost ? shownIf(cost[4], size) : ""));
    if (timed) cells.push(make("td", { className: "number blocked", style: cost ? heat(cost[5], greatest.seconds) : "" }, cost ? shownIf(cost[5], duration) : ""));
    cells.push(make("td", { className: "row-number" }, String(row)), make("td", { className: "text" }, ...code(line)));
    const element = make("tr", { className: [cost ? "costly" : "", isTarget ? "target" : ""].filter(Boolean).join(" ") }, ...cells);
    element.dataset.line = row;
    if (cost) {
      element.dataset.weight = most(cost[5]) + most(cost[4]) / 1e10;
      element.title = "Click for what happened here";
      element.addEventListener("click", () => {
        if (element.nextSibling?.classList?.contains("details")) element.nextSibling.remove();
        else element.after(details(file, row, columns));
      });
    }
    return element;
  }

  function details(file, row, columns) {
    const rows = data.rows.filter((each) => each[0] === source.table && each[1] === file && each[2] === row);
    const words = rows.map(([, , , direction, how, via, expression, calls, bytes, seconds]) => make("div", {},
      make("b", {}, direction), ` ${between(calls, number)} calls`, ...[shownIf(bytes, size), shownIf(seconds, duration) && `${shownIf(seconds, duration)} blocked`, how, via && `via ${via}`].filter(Boolean).map((part) => `, ${part}`),
      ...(expression ? [make("br"), make("code", {}, expression)] : [])));
    return make("tr", { className: "details" }, make("td", { colSpan: columns }, ...words));
  }

  function openLine(table, file, row) {
    source.table = table;
    byId("source-table") && (byId("source-table").value = String(table));
    fillFiles();
    showFile(file, row);
    byId("source").scrollIntoView();
  }

  function prepareSource() {
    if (!data.files.length) {
      byId("source-hint").textContent = "Nothing happened at a line of code that is known.";
      return;
    }
    const select = make("select", { id: "source-table" });
    data.tables.forEach(([title], index) => select.append(make("option", { value: String(index) }, title)));
    const explain = () => {
      const [, unit] = data.tables[source.table] ?? ["", ""];
      byId("source-hint").textContent = `${unit ? `The figures are ${unit}. ` : ""}The darker, the more bytes, or the longer the host was blocked. Click a line for what happened there.`;
    };
    select.addEventListener("change", () => { source.table = Number(select.value); explain(); showFile(fillFiles()); });
    if (data.tables.length) byId("source-controls").append(make("label", {}, "Phase ", select));
    byId("source-controls").hidden = !data.tables.length;
    byId("source-view").hidden = false;
    explain();
    showFile(fillFiles());
  }

  // The table ------------------------------------------------------------------------------------------------------

  const CHUNK = 100;
  const COLUMNS = [
    { title: "where", key: (row) => `${fileName(row[1])}:${String(row[2]).padStart(7, "0")}` },
    { title: "phase", key: (row) => row[0] },
    { title: "direction", key: (row) => row[3] },
    { title: "calls", number: true, key: (row) => most(row[7]) },
    { title: "bytes", number: true, key: (row) => most(row[8]) },
    { title: "blocked", number: true, key: (row) => most(row[9]), hidden: () => !data.tables.some((table) => table[3]) },
    { title: "how", key: (row) => row[4] },
    { title: "code", key: (row) => row[6] },
  ];
  const table = { sort: null, falling: true, shown: CHUNK, rows: [] };

  function place(row) {
    return row[1] < 0 ? fileName(-1) : `${fileName(row[1])}:${row[2]}`;
  }

  function words(row) {
    row.words ??= `${place(row)} ${row[3]} ${row[4]} ${row[5]} ${row[6]} ${data.tables[row[0]][0]}`.toLowerCase();
    return row.words;
  }

  function chosenRows() {
    const wanted = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const phase = byId("phase").value, direction = byId("direction").value;
    const found = data.rows.filter((row) => (phase === "" || row[0] === Number(phase)) && (direction === "" || row[3] === direction) && wanted.every((word) => words(row).includes(word)));
    if (table.sort === null) return found;
    const { key, number: numeric } = COLUMNS[table.sort], sign = table.falling ? -1 : 1;
    const keyed = found.map((row) => [key(row), row]);
    keyed.sort(([a], [b]) => sign * (numeric ? a - b : a < b ? -1 : a > b ? 1 : 0));
    return keyed.map(([, row]) => row);
  }

  function tableRow(row) {
    const where = row[1] < 0 ? place(row) : make("a", { href: "#source", textContent: place(row) });
    if (row[1] >= 0) where.addEventListener("click", (event) => { event.preventDefault(); openLine(row[0], row[1], row[2]); });
    const texts = [where, data.tables[row[0]][0], row[3], between(row[7], number), shownIf(row[8], size), shownIf(row[9], duration), row[4], row[6]];
    const names = ["where", "where", "", "number", "number", "number", "", "mono"];
    const cells = texts.map((text, index) => make("td", { className: names[index] }, text));
    cells[2].title = DIRECTIONS[row[3]] ?? "";
    if (row[5]) cells[7].append(make("div", { className: "hint" }, `via ${row[5]}`));
    return make("tr", {}, ...cells.filter((_, index) => !COLUMNS[index].hidden?.()));
  }

  function fillTable(again = true) {
    if (again) { table.rows = chosenRows(); table.shown = CHUNK; }
    const body = byId("rows").tBodies[0], before = again ? 0 : body.rows.length;
    if (again) body.replaceChildren();
    body.append(...table.rows.slice(before, table.shown).map(tableRow));
    byId("more").hidden = table.shown >= table.rows.length;
    const [shown, all] = [Math.min(table.shown, table.rows.length), table.rows.length];
    byId("count").textContent = `${number(shown)} of ${number(all)}${all < data.rows.length ? ` (${number(data.rows.length)} without the filter)` : ""}`;
    for (const [index, head] of [...byId("rows").tHead.rows[0].cells].entries()) {
      if (Number(head.dataset.column) === table.sort) head.setAttribute("aria-sort", table.falling ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
  }

  function prepareTable() {
    if (!data.rows.length) {
      byId("table-hint").textContent = "Nothing was copied between the host and a device, and nothing was waited for.";
      byId("table").querySelectorAll(".controls, .scroll").forEach((element) => { element.hidden = true; });
      return;
    }
    const head = byId("rows").tHead.rows[0];
    COLUMNS.forEach((column, index) => {
      if (column.hidden?.()) return;
      const button = make("button", { type: "button", textContent: column.title });
      button.addEventListener("click", () => {
        [table.falling, table.sort] = [table.sort === index ? !table.falling : Boolean(column.number), index];
        fillTable();
      });
      const cell = make("th", { scope: "col", className: column.number ? "number" : "" }, button);
      cell.dataset.column = index;
      head.append(cell);
    });
    byId("phase").append(make("option", { value: "" }, "all"), ...data.tables.map(([title], index) => make("option", { value: String(index) }, title)));
    const directions = Object.keys(DIRECTIONS).filter((name) => data.rows.some((row) => row[3] === name));
    byId("direction").append(make("option", { value: "" }, "all"), ...directions.map((name) => make("option", { value: name }, name)));
    byId("filter").addEventListener("input", () => fillTable());
    for (const id of ["phase", "direction"]) byId(id).addEventListener("change", () => fillTable());
    byId("more").addEventListener("click", () => { table.shown += 5 * CHUNK; fillTable(false); });
    byId("table-hint").textContent = directions.map((name) => `${name}: ${DIRECTIONS[name]}`).join("; ");
    fillTable();
  }

  // The findings ---------------------------------------------------------------------------------------------------

  function prepareFindings() {
    if (data.problems.length) {
      const box = byId("further"), button = make("button", { type: "button" }, `Show ${number(data.problems.length)} more`);
      button.addEventListener("click", () => {
        const rows = data.problems.map((problem) => [...problem.slice(0, 5).map((text) => data.texts[text]), ...problem.slice(5)]).map(([rule, name, severity, message, file, row, column]) => make("tr", {},
          make("td", {}, severity), make("td", {}, make("a", { href: `#rule-${rule}`, textContent: rule, title: name })),
          make("td", { className: "mono" }, `${file}:${row}:${column}`), make("td", {}, message)));
        box.replaceChildren(make("div", { className: "scroll" }, make("table", {}, make("tbody", {}, ...rows))));
      });
      box.append(button);
      box.hidden = false;
    }
    for (const place of document.querySelectorAll("a.place")) {
      const file = data.files.findIndex(([name]) => name === place.dataset.file);
      place.addEventListener("click", (event) => { event.preventDefault(); openLine(source.table, file, Number(place.dataset.row)); });
    }
    const open = () => { if (location.hash.startsWith("#rule-")) byId(location.hash.slice(1))?.setAttribute("open", ""); };
    addEventListener("hashchange", open);
    open();
  }

  prepareFindings();
  prepareTable();
  prepareSource();
  const hasSteps = prepareSteps();
  return {
    data, number, size, duration, between, steps, ready: false,
    async draw() {
      if (hasSteps) { redraw.push(drawSteps); await drawSteps(); }
      this.ready = true;
    },
  };
})();
