// Player of paperbook.explore: sliders choose one of the frames drawn when the book was printed.
(() => {
  const player = document.currentScript.closest("figure");
  const stage = player.querySelector(".pb-stage");
  const sliders = [...player.querySelectorAll("input[type=range]")];
  const play = player.querySelector("button");
  const packed = player.querySelector("script[type='application/x-paperbook-frames']").textContent;
  let frames = null, timer = null;

  async function unpack() {
    const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    frames = JSON.parse(await new Response(stream).text());
  }

  function show() {
    let index = 0;  // row-major over the sliders, the last one varying fastest
    for (const slider of sliders) {
      const values = JSON.parse(slider.dataset.values);
      index = index * values.length + Number(slider.value);
      slider.setAttribute("aria-valuetext", values[slider.value]);
      slider.parentElement.querySelector("output").textContent = values[slider.value];
    }
    stage.innerHTML = frames[index];
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "▶ Play";
  }

  play.addEventListener("click", () => {
    if (timer) return stop();
    play.textContent = "❚❚ Pause";
    timer = setInterval(() => {
      const film = sliders[0];
      film.value = (Number(film.value) + 1) % (Number(film.max) + 1);
      show();
    }, 700);
  });
  sliders.forEach((slider) => slider.addEventListener("input", () => { stop(); show(); }));
  unpack().then(() => { player.querySelector(".pb-controls").hidden = false; show(); });
})();
