// The theme of the page: the theme of the system, or a chosen one.

export function showTheme() {
  const choice = document.getElementById("theme");
  const set = (theme) => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  };
  const kept = localStorage.getItem("theme") || "";
  choice.value = ["", "light", "dark"].includes(kept) ? kept : "";
  set(choice.value);
  choice.addEventListener("change", () => {
    set(choice.value);
    localStorage.setItem("theme", choice.value);
  });
}
