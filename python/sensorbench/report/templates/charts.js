// Draws every chart in the colours of the page, and again when the reader changes between light and dark.
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const theme = (width) => {
  const text = style("--text"), soft = style("--soft"), line = style("--line");
  const font = getComputedStyle(document.body).fontFamily;
  return {
    background: "transparent", font,
    view: { stroke: "transparent" },
    axis: { labelColor: soft, titleColor: soft, gridColor: line, domainColor: line, tickColor: line, titleFontWeight: "normal", labelFontSize: 11, titleFontSize: 12, labelOverlap: "greedy", labelSeparation: 6, labelBound: true },
    axisY: { labelLimit: Math.max(90, 0.38 * width) },
    legend: { labelColor: text, titleColor: soft, labelFontSize: 12, labelLimit: Math.max(120, (width < WIDE ? 0.85 : 0.45) * width),
      layout: { bottom: { direction: width < WIDE ? "vertical" : "horizontal" } } },
  };
};
// Narrower places have no room for legends of several columns.
const WIDE = 480;
const fitted = (specification, width) => width >= WIDE ? specification : JSON.parse(
  JSON.stringify(specification, (key, value) => key === "legend" && value?.columns ? { ...value, columns: 1 } : value));
const draw = () => {
  for (const place of document.querySelectorAll("[data-chart]")) {
    const width = place.clientWidth;
    const specification = fitted(specifications[place.dataset.chart], width);
    const config = { ...specification.config, ...theme(width) };
    vegaEmbed(place, { ...specification, config, autosize: { type: "fit-x", contains: "padding" } }, { actions: false, renderer: "svg" });
  }
};
draw();
let drawnWidth = innerWidth;
addEventListener("resize", () => {
  if (innerWidth !== drawnWidth) { drawnWidth = innerWidth; draw(); }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
