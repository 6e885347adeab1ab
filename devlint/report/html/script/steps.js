// The charts: a bar for each step, drawn by Vega-Lite.
const COLORS = {  // in light and in dark
  H2D: ["#0072b2", "#56b4e9"], D2H: ["#d98a00", "#f0b042"], D2D: ["#a8558c", "#d893bd"],
  sync: ["#c4400c", "#ff8259"], pin: ["#00805e", "#35c79f"], call: ["#6e7781", "#9aa4af"],
  "waiting for the loader": ["#a8558c", "#d893bd"], blocked: ["#c4400c", "#ff8259"],
  "rest of the step": ["#c3cbd3", "#3a434d"],
};
const KINDS = Object.keys(COLORS);
const MEASURES = {
  bytes: { title: "Bytes", show: size },
  calls: { title: "Calls", show: number },
  blocked: { title: "Host blocked", show: duration },
  time: { title: "Step time", show: duration },
};
const FEW_BARS = 300;  // of more of them the gaps would be as wide as the bars
const PHASES = { train: "Training", eval: "Evaluation" };
const CHART = {  // in Vega-Lite: a stack of bars for each step, of data with `from`, `to`, `what`, `order` and `value`
  width: "container", height: 170, autosize: { type: "fit-x", contains: "padding" },
  data: { name: "steps", values: [] },
  params: [{
    name: "zoom", select: { type: "interval", encodings: ["x"], zoom: "wheel![event.shiftKey]" }, bind: "scales",
  }],
  mark: { type: "bar", clip: true, binSpacing: 0, tooltip: { content: "data" } },
  encoding: {
    x: {
      field: "from", bin: { binned: true }, type: "quantitative", title: "step", scale: { zero: false, nice: false },
      // of few steps Vega has ticks between them, too
      axis: { tickMinStep: 1, labelExpr: "datum.value % 1 ? '' : format(datum.value, ',d')", grid: false },
    },
    x2: { field: "to" },
    y: {
      field: "value", type: "quantitative", stack: "zero", title: null,
      axis: { labelExpr: "amount(datum.value)", tickCount: 4, minExtent: 64 },
    },
    color: { field: "what", type: "nominal", title: null, legend: { orient: "top" } },
    order: { field: "order", type: "quantitative" },
  },
};
const charts = { measure: "bytes", phase: "train", results: [] };

function valuesOf(step) {
  if (charts.measure !== "time") return step.flows.map((flow) => [flow.direction, flow[charts.measure] ?? 0]);
  const seconds = step.seconds ?? 0, waiting = Math.min(step.waited ?? 0, seconds);
  const blocked = Math.min(sum(step.flows.map((flow) => flow.blocked ?? 0)), seconds - waiting);
  return [["waiting for the loader", waiting], ["blocked", blocked], ["rest of the step", seconds - waiting - blocked]];
}

const drawnSteps = (process) => process.steps.filter((step) => step.phase === charts.phase);
const heightOf = (step) => sum(valuesOf(step).map(([, value]) => value));

function bars(steps) {
  return steps.flatMap((step, index) => {
    const stride = index ? step.number - steps[index - 1].number : 1;
    const next = steps[index + 1]?.number ?? step.number + stride;
    return valuesOf(step).filter(([, value]) => value).map(([what, value]) => (
      { index, from: step.number - 0.5, to: next - 0.5, what, value, order: KINDS.indexOf(what) }
    ));
  });
}

function binaryTicks(highest) {  // round figures in KiB or MiB, which are none in powers of ten
  const unit = 1024 ** Math.floor(Math.log(highest) / Math.log(1024)), rough = highest / unit / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const each = unit * power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough);
  return Array.from({ length: Math.floor(highest / each) + 1 }, (_, index) => index * each);
}

function configuration() {
  const style = getComputedStyle(document.body), labelColor = getComputedStyle(byId("step-hint")).color;
  const line = getComputedStyle(document.querySelector(".top")).borderBottomColor;
  return {
    background: null, font: style.fontFamily, view: { stroke: null },
    axis: {
      labelColor, titleColor: labelColor, tickColor: line, domainColor: line, gridColor: line,
      labelFontSize: 11, titleFontWeight: "normal",
    },
    legend: { labelColor: style.color, symbolType: "square", labelFontSize: 12, labelLimit: 240 },
  };
}

function specification(values, highest) {
  const spec = structuredClone(CHART), { x, y, color } = spec.encoding;
  const domain = KINDS.filter((name) => values.some((value) => value.what === name));
  spec.data.values = values;
  if (processes.length > 1) spec.height = 100;
  if (values.length < FEW_BARS) spec.mark.binSpacing = 1;
  x.title = `${PHASES[charts.phase].toLowerCase()} step`;
  if (highest) y.scale = { domain: [0, highest] };
  if (highest && charts.measure === "bytes") y.axis.values = binaryTicks(highest);
  color.scale = { domain, range: domain.map((name) => COLORS[name][Number(isDark())]) };
  return spec;
}

function drawChart(process, highest) {
  const steps = drawnSteps(process), plot = make("div", { className: "plot" });
  const heading = processes.length > 1 ? [make("h3", {}, process.title)] : [];
  byId("charts").append(make("div", { className: "chart" }, ...heading, plot));
  const options = {
    mode: "vega-lite", actions: false, renderer: "canvas", config: configuration(), logLevel: 1,  // 1: errors alone
    tooltip: (handler, event, item, value) => showTip(event, value && steps[item.datum.index]),
    expressionFunctions: { amount: (value) => MEASURES[charts.measure].show(value) },
  };
  return vegaEmbed(plot, specification(bars(steps), highest), options).then((result) => charts.results.push(result));
}

function drawSteps() {
  charts.results.splice(0).forEach((result) => result.finalize());
  byId("charts").replaceChildren();
  const highest = greatest(processes.flatMap(drawnSteps).map(heightOf));  // ranks share their scale
  return Promise.all(processes.map((process) => drawChart(process, highest)));
}

function tipText(step) {
  const head = `${PHASES[step.phase]} step ${number(step.number)}`;
  const flows = step.flows.map(({ direction, calls, bytes, blocked }) => joined([
    direction, number(calls) + (calls === 1 ? " call" : " calls"), bytes && size(bytes), blockedFor(blocked),
  ], "  "));
  const waited = step.waited ? [`waiting for the loader  ${duration(step.waited)}`] : [];
  return [step.seconds === null ? head : `${head}: ${duration(step.seconds)}`, ...waited, ...flows].join("\n");
}

function showTip(event, step) {
  const element = byId("tip");
  element.hidden = !step;
  if (!step) return;
  element.textContent = tipText(step);
  const { width, height } = element.getBoundingClientRect();
  element.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
  element.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - height - 8))}px`;
}

function stepNotes(steps) {
  const { every, left_out: leftOut } = data.history;
  const skips = steps.some((step, index) => {
    const before = steps[index - 1];
    return before?.phase === step.phase && step.number - before.number > 1;
  });
  return joined([
    "One bar for each step. Drag to move, Shift and the wheel to zoom, double-click for all.",
    (every > 1 || skips) && "Of this long run some steps are shown, evenly spread.",
    leftOut && `${number(leftOut)} more processes are not drawn; the table has them all.`,
    !steps.some((step) => step.flows.length) && "Nothing was copied and nothing was waited for in any step.",
  ], " ");
}

function prepareSteps() {
  const steps = processes.flatMap((process) => process.steps);
  if (!steps.length) {
    const older = !data.history.recorded && tables.some((table) => table.phase in PHASES);
    byId("step-hint").textContent = older
      ? "This record was made by an older devlint, which did not keep the steps one by one."
      : "No step of a training loop was seen.";
    return;
  }
  const phases = Object.keys(PHASES).filter((phase) => steps.some((step) => step.phase === phase));
  const timed = steps.some((step) => step.seconds !== null);
  const measures = Object.keys(MEASURES).filter((name) => timed || !["blocked", "time"].includes(name));
  charts.phase = phases[0];
  if (timed && !steps.some((step) => step.flows.length)) charts.measure = "time";
  const chooser = (field, names, titles) => choice(names.map((name) => [name, titles(name)]), charts[field], (name) => {
    charts[field] = name;
    drawSteps();
  });
  byId("step-controls").append(
    chooser("measure", measures, (name) => MEASURES[name].title), chooser("phase", phases, (name) => PHASES[name]),
  );
  byId("step-controls").hidden = false;
  byId("step-hint").textContent = stepNotes(steps);
  onTheme.push(drawSteps);
}
