// Runs before the first paint, so that a chosen theme never flashes. Everything else of themes: state.js.
{
  const chosen = localStorage.getItem("rota.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
