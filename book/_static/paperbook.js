// What the theme leaves without a name: the arrows that open a part in the sidebar.
for (const arrow of document.querySelectorAll("nav details > summary")) {
  const page = arrow.closest("li").querySelector("a").textContent.trim();
  arrow.setAttribute("aria-label", `Show or hide the pages of ${page}`);
}

// The theme's list of references holds anchors that a list may not hold; plain paragraphs read well.
for (const entry of document.querySelectorAll(".citation-list, .citation-list [role]")) entry.removeAttribute("role");

// Filters for cards and claims, and sortable columns. Pages are whole without it: everything is then shown.
for (const bar of document.querySelectorAll(".pb-filters")) {
  const items = [...document.querySelector(bar.dataset.target).querySelectorAll("[data-item]")];
  const controls = [...bar.querySelectorAll("[data-filter]")];
  const count = bar.parentElement.querySelector(".pb-count");

  const matches = (item) => controls.every(({ dataset, value }) =>
    dataset.filter === "text"
      ? item.textContent.toLowerCase().includes(value.trim().toLowerCase())
      : !value || item.dataset[dataset.filter] === value);

  const apply = () => {
    for (const item of items) item.hidden = !matches(item);
    count.textContent = `${items.filter((item) => !item.hidden).length} of ${items.length} shown`;
  };
  controls.forEach((control) => control.addEventListener("input", apply));
  apply();
}

for (const table of document.querySelectorAll(".pb-sortable")) {
  const headers = [...table.querySelectorAll("thead th")];
  const key = (row, column) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();

  headers.forEach((header, column) => header.querySelector("button").addEventListener("click", () => {
    const up = header.getAttribute("aria-sort") !== "ascending";
    headers.forEach((other) => other.setAttribute("aria-sort", "none"));
    header.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const [x, y] = [key(a, column), key(b, column)];
      if (x === "" || y === "") return (x === "") - (y === "");  // what was not measured stays last
      return (up ? 1 : -1) * (Number(x) - Number(y) || String(x).localeCompare(String(y), "en", { numeric: true }));
    });
    table.tBodies[0].append(...rows);
  }));
}
