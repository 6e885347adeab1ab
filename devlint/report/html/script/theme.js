// Light, dark, or as the system has it.
const THEMES = ["system", "light", "dark"];
const darkSystem = matchMedia("(prefers-color-scheme: dark)");
const onTheme = [];  // what has to be drawn again

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : darkSystem.matches;
}

function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  byId("theme").textContent = `Theme: ${theme}`;
  onTheme.forEach((draw) => draw());
}

function remembered() {
  try {
    const theme = localStorage.getItem("devlint-theme");
    return THEMES.includes(theme) ? theme : "system";
  } catch {  // a browser may keep nothing for files
    return "system";
  }
}

function remember(theme) {
  try {
    localStorage.setItem("devlint-theme", theme);
  } catch {
    // then the next page begins with the system's
  }
}

function prepareTheme() {
  let theme = remembered();
  byId("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    remember(theme);
    setTheme(theme);
  });
  darkSystem.addEventListener("change", () => onTheme.forEach((draw) => draw()));
  setTheme(theme);
}
