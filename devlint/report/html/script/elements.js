// Elements of the page. Text of the record only ever becomes a text node, never markup.
const byId = (id) => document.getElementById(id);

function make(tag, fields = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(fields)) {
    if (name in element && name !== "style") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const option = (value, text) => make("option", { value: String(value) }, text);

// Buttons of which one is pressed.
function choice(options, chosen, pick) {
  const group = make("span", { className: "choice", role: "group" });
  for (const [value, title] of options) {
    const button = make("button", { type: "button", ariaPressed: String(value === chosen) }, title);
    button.addEventListener("click", () => {
      for (const other of group.children) other.ariaPressed = String(other === button);
      pick(value);
    });
    group.append(button);
  }
  return group;
}

const joined = (parts, separator = ", ") => parts.filter(Boolean).join(separator);
const sum = (values) => values.reduce((total, value) => total + value, 0);
const greatest = (values) => values.reduce((most, value) => Math.max(most, value), 0);
