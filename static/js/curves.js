// Curves: the values at a step, for whoever points at a picture or moves through it with the keys.
"use strict";
(() => {
  const kept = new Map(); // ident of a plot → step, so that a swap of the page keeps the place

  const readNumbers = (text) => (text ? text.split(" ").map(Number) : []);

  function linesOf(svg) {
    return [...svg.querySelectorAll("path[data-steps]")].map((path) => ({
      steps: readNumbers(path.dataset.steps),
      values: path.dataset.values ? path.dataset.values.split(" ") : [],
    }));
  }

  function nearest(steps, wanted) {
    let best = -1;
    let least = Infinity;
    steps.forEach((step, i) => {
      const gap = Math.abs(step - wanted);
      if (gap < least) { least = gap; best = i; }
    });
    return best;
  }

  function allSteps(plot) {
    const steps = new Set(linesOf(plot.querySelector("svg")).flatMap((line) => line.steps));
    return [...steps].sort((a, b) => a - b);
  }

  function show(plot, wanted, say) {
    const svg = plot.querySelector("svg");
    const steps = svg ? allSteps(plot) : [];
    if (!steps.length) return;
    const step = steps[nearest(steps, wanted)];
    const { left, right, first, last } = svg.dataset;
    const x = +left + ((step - first) / (last - first)) * (right - left);
    const cursor = svg.querySelector(".c-cursor");
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    cursor.classList.add("on");
    const figure = plot.closest("figure");
    const words = [];
    figure.querySelectorAll("[data-line]").forEach((item, k) => {
      const line = linesOf(svg)[k];
      const at = line ? line.steps.indexOf(step) : -1;
      const value = item.querySelector(".value");
      if (value.dataset.last === undefined) value.dataset.last = value.textContent;
      value.textContent = at < 0 ? "–" : line.values[at].replaceAll("-", "−");
      words.push(`${item.dataset.line} ${value.textContent}`);
    });
    const where = figure.querySelector(".at");
    where.textContent = `${where.dataset.step} ${step.toLocaleString()}`;
    kept.set(plot.id, step);
    const status = document.getElementById("curve-status");
    if (say && status) status.textContent = `${where.textContent}: ${words.join(", ")}`;
  }

  function clear(plot) {
    kept.delete(plot.id);
    const svg = plot.querySelector("svg");
    if (!svg) return;
    svg.querySelector(".c-cursor")?.classList.remove("on");
    const figure = plot.closest("figure");
    figure.querySelector(".at").textContent = "";
    figure.querySelectorAll(".value[data-last]").forEach((value) => {
      value.textContent = value.dataset.last;
    });
  }

  function stepAt(plot, event) {
    const svg = plot.querySelector("svg");
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    const { left, right, first, last } = svg.dataset;
    return +first + ((x - left) / (right - left)) * (last - first);
  }

  function move(plot, event) {
    const steps = allSteps(plot);
    if (!steps.length) return;
    const place = kept.has(plot.id) ? nearest(steps, kept.get(plot.id)) : steps.length;
    const far = event.shiftKey || event.key.startsWith("Page") ? 10 : 1;
    const to = {
      ArrowLeft: place - far, ArrowRight: place + far, PageUp: place - far, PageDown: place + far,
      Home: 0, End: steps.length - 1,
    }[event.key];
    if (event.key === "Escape") { clear(plot); return; }
    if (to === undefined) return;
    event.preventDefault();
    show(plot, steps[Math.min(Math.max(to, 0), steps.length - 1)], true);
  }

  function ready(root) {
    root.querySelectorAll("[data-curve]").forEach((plot) => {
      if (kept.has(plot.id)) show(plot, kept.get(plot.id), false);
    });
  }

  const plotOf = (event) => event.target.closest?.("[data-curve]");
  document.addEventListener("pointermove", (event) => {
    const plot = plotOf(event);
    if (plot) show(plot, stepAt(plot, event), false);
  });
  document.addEventListener("pointerout", (event) => {
    const plot = plotOf(event);
    if (plot && !plot.contains(event.relatedTarget) && document.activeElement !== plot) clear(plot);
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.matches?.("[data-curve]")) move(event.target, event);
  });
  document.addEventListener("focusout", (event) => {
    // A swap takes the focus away and gives it back: only a real leaving clears the place.
    if (event.target.matches?.("[data-curve]") && event.relatedTarget) clear(event.target);
  });
  document.addEventListener("htmx:afterSettle", () => ready(document));
  ready(document);
})();
