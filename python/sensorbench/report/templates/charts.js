// Draws every chart in the colours of the page, and again when the reader changes between light and dark.
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const theme = () => {
  const text = style("--text"), soft = style("--soft"), line = style("--line");
  const font = getComputedStyle(document.body).fontFamily;
  return {
    background: "transparent", font,
    view: { stroke: "transparent" },
    axis: { labelColor: soft, titleColor: soft, gridColor: line, domainColor: line, tickColor: line, titleFontWeight: "normal", labelFontSize: 11, titleFontSize: 12 },
    legend: { labelColor: text, titleColor: soft, labelFontSize: 12, labelLimit: 220 },
  };
};
const draw = () => {
  for (const place of document.querySelectorAll("[data-chart]")) {
    const specification = specifications[place.dataset.chart];
    if (!specification) continue;
    const config = { ...specification.config, ...theme() };
    vegaEmbed(place, { ...specification, config, autosize: { type: "fit-x", contains: "padding" } }, { actions: false, renderer: "svg" });
  }
};
draw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
