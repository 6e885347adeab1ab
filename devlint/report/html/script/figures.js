// Figures, as devlint/report/audit/units.py writes them.
function fixed(value, digits) {  // as Python rounds: a tie goes to the even digit
  const scaled = value * 10 ** digits;
  const tie = Number.isInteger(value * 2 ** (digits + 1)) && Math.abs(scaled % 1) === 0.5;
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
  while (value >= 1023.5 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit ? three(value) : number(value)} ${units[unit]}`;
}

function duration(seconds) {
  if (seconds >= 7200) return `${fixed(seconds / 3600, 1)} h`;
  if (seconds >= 120) return `${fixed(seconds / 60, 0)} min`;
  if (seconds / 1e-6 < 999.5) {
    const value = seconds / 1e-6;
    return value >= 1 || value === 0 ? `${fixed(value, 0)} us` : "<1 us";
  }
  return seconds / 1e-3 < 999.5 ? `${three(seconds / 1e-3)} ms` : `${three(seconds)} s`;
}

function between(value, show) {  // a number, or the least and the greatest of several processes
  if (value === null) return "";
  if (!Array.isArray(value)) return show(value);
  const [low, high] = value.map(show);
  if (low === high) return high;
  const [digits, unit = ""] = low.split(" ");
  return unit === (high.split(" ")[1] ?? "") ? `${digits}-${high}` : `${low}-${high}`;
}

const most = (value) => value === null ? 0 : Array.isArray(value) ? value[1] : value;
const unlessZero = (value, show) => most(value) ? between(value, show) : "";
const blockedFor = (value) => most(value) ? `${between(value, duration)} blocked` : "";
