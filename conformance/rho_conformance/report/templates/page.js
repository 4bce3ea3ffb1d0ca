(() => {
  "use strict";
  const one = (query, root = document) => root.querySelector(query);
  const all = (query, root = document) => [...root.querySelectorAll(query)];

  // What needs this script is hidden without it.
  all("#filter, #theme, .script").forEach((element) => (element.hidden = false));

  one("#theme").addEventListener("click", () => {
    const dark = getComputedStyle(document.documentElement).getPropertyValue("color-scheme").trim();
    const now = dark === "dark" || (dark !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
    document.documentElement.dataset.theme = now ? "light" : "dark";
  });

  // --- filter ---
  const rows = all("#matrix tbody tr").map((row) => ({
    row,
    text: row.cells[0].textContent.toLowerCase() + " " + row.cells[1].textContent.toLowerCase(),
    area: row.dataset.area,
    verdicts: [...row.cells].slice(2).map((cell) => cell.className),
  }));
  const form = one("#filter");
  const filter = () => {
    const words = one("#find").value.toLowerCase().split(/\s+/).filter(Boolean);
    const area = one("#area").value;
    const wanted = new Set(all("[name=verdict]:checked").map((box) => box.value));
    const boxes = all("[name=verdict]").length;
    let shown = 0;
    for (const { row, text, area: own, verdicts } of rows) {
      const fits =
        words.every((word) => text.includes(word)) &&
        (!area || area === own) &&
        (wanted.size === boxes || verdicts.some((verdict) => wanted.has(verdict))) &&
        (!one("#differ").checked || new Set(verdicts).size > 1);
      row.hidden = !fits;
      shown += fits;
    }
    one("#count").textContent = `${shown} of ${rows.length} rules`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();

  const findKill = one("#findkill");
  if (findKill)
    findKill.addEventListener("input", () => {
      const word = findKill.value.toLowerCase();
      for (const row of all("#killtable tbody tr")) row.hidden = !row.textContent.toLowerCase().includes(word);
    });

  // --- from a verdict to its evidence, and back ---
  let left = null;
  const reveal = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (!target) return;
    for (let up = target; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
    if (target.closest("#matrix") && target.hidden) {
      form.reset();
      setTimeout(filter);
    }
    target.scrollIntoView();
    if (target.hasAttribute("tabindex")) target.focus({ preventScroll: true });
  };
  addEventListener("hashchange", reveal);
  one("#matrix").addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    left = link;
    if (link.hash === location.hash) reveal();
  });
  reveal();

  // --- keys ---
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  one("#matrix").addEventListener("keydown", (event) => {
    const cell = event.target.closest("th, td");
    if (!step[event.key] || !cell || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    let [down, right] = step[event.key];
    let row = cell.parentElement;
    let column = cell.cellIndex;
    for (;;) {
      if (down) row = down > 0 ? row.nextElementSibling : row.previousElementSibling;
      column += right;
      const link = row && row.cells[column] && one("a", row.cells[column]);
      if (!row || column < 0 || column >= row.cells.length) return;
      if (!row.hidden && link) return link.focus();
    }
  });
  addEventListener("keydown", (event) => {
    if (event.target.matches("input, select")) return;
    if (event.key === "/") {
      event.preventDefault();
      one("#find").focus();
    } else if (event.key === "Escape" && left) {
      left.focus();
      left.scrollIntoView({ block: "center" });
    }
  });

  // --- pictures that answer ---
  const grid = one("#grid");
  if (grid) {
    const rules = all("text[transform]", grid).map((text) => text.textContent);
    const names = all("#killtable tbody th").map((head) => head.textContent);
    grid.addEventListener("mousemove", (event) => {
      const box = grid.getBoundingClientRect();
      const scale = grid.viewBox.baseVal.width / box.width;
      const rule = rules[Math.floor(((event.clientX - box.left) * scale - 300) / 9)];
      const name = names[Math.floor(((event.clientY - box.top) * scale - 92) / 9)];
      one("#hover").textContent = rule && name ? `${name} × ${rule}` : "";
    });
  }
  const arcs = one("#arcs");
  if (arcs) {
    const pick = (event) => {
      const name = event.type === "mouseout" || event.type === "focusout" ? null : event.target.dataset.s;
      arcs.classList.toggle("picked", Boolean(name));
      for (const path of all("path", arcs))
        path.classList.toggle("near", path.dataset.a === name || path.dataset.b === name);
    };
    ["mouseover", "mouseout", "focusin", "focusout"].forEach((kind) => arcs.addEventListener(kind, pick));
  }
})();
