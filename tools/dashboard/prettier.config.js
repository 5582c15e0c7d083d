// How the dashboard's scripts are laid out.
export default {
  printWidth: 120,
  plugins: [new URL("./htm-templates.js", import.meta.url).href],
};
