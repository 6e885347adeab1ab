// What the page was made of, as objects: see costs.py, history.py and problems.py for the arrays.
const data = JSON.parse(document.getElementById("data").textContent);

const tables = data.tables.map(([title, unit, phase, timed]) => ({ title, unit, phase, timed }));
const files = data.files.map(([name, chunks]) => ({ name, chunks }));
const rows = data.rows.map(([table, file, line, direction, how, via, code, calls, bytes, seconds, copying]) => (
  { table, file, line, direction, how: data.texts[how], via: data.texts[via], code, calls, bytes, seconds, copying }
));
const lines = data.lines.map(([table, file, line, calls, bytes, seconds]) => (
  { table, file, line, calls, bytes, seconds }
));
const problems = data.problems.map(([code, name, severity, message, file, line, column]) => ({
  code: data.texts[code], name: data.texts[name], severity: data.texts[severity], message: data.texts[message],
  place: `${data.texts[file]}:${line}:${column}`,
}));
const processes = data.history.processes.map(([title, found]) => ({
  title,
  steps: found.map(([phase, number, seconds, waited, flows]) => ({
    phase, number, seconds, waited,
    flows: Object.entries(flows).map(([direction, [calls, bytes, blocked]]) => ({ direction, calls, bytes, blocked })),
  })),
}));

const DIRECTIONS = {
  H2D: "to a device", D2H: "from a device", D2D: "between devices", sync: "the host waited for the device",
  pin: "copied to pinned memory", call: "a call that costs by itself",
};
const NOWHERE = "in no line of Python";
const fileName = (file) => file < 0 ? NOWHERE : files[file].name;
