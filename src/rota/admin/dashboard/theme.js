// Runs before the first paint, so that the chosen theme never flashes. Everything else about themes: state.js.
{
  const chosen = localStorage.getItem("rota.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
