// Plays a run in three dimensions from the page itself: nothing is fetched, nothing is installed.
(function () {
  const data = JSON.parse(document.getElementById("playback").textContent);
  const player = document.getElementById("player");
  const time = floatsOf(data.time), poses = floatsOf(data.poses), frames = time.length, start = time[0], end = time[frames - 1];
  const signals = data.signals.map((s) => ({ name: s.name, unit: s.unit, kind: s.kind, values: floatsOf(s.values) }));
  const ground = new Float32Array(data.ground);
  let now = start, frame = 0, playing = false, speed = 1, last = 0;
  function pose(body) {
    if (body < 0) return ground;
    const o = 7 * (frame * data.bodies + body);
    const [px, py, pz, x, y, z, w] = poses.subarray(o, o + 7);
    return new Float32Array([
      1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w), 0,
      2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w), 0,
      2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y), 0,
      px, py, pz, 1]);
  }
  const scene = makeScene(document.getElementById("scene"), data, pose);
  if (!scene) { player.classList.add("still"); return; }
  const ribbons = data.tracks.map((track) => scene.ribbon(floatsOf(track.points)));
  function draw() {
    const tracks = document.getElementById("trails").checked;
    scene.draw(tracks ? ribbons.map((strip) => strip.subarray(0, 6 * (frame + 1))) : []);
  }

  // a signal over time ---------------------------------------------------------------------------
  const chart = document.getElementById("chart"), choice = document.getElementById("signal");
  signals.forEach((s, k) => choice.add(new Option(s.unit ? `${s.name} [${s.unit}]` : s.name, String(k))));
  choice.value = String(Math.max(0, signals.findIndex((s) => ["measure", "input", "independent"].includes(s.kind))));
  if (!signals.length) { document.getElementById("signals").hidden = true; }
  function drawChart() {
    if (!signals.length) return;
    const s = signals[+choice.value || 0];
    drawCurves(chart, time, [s], frames, now);
    document.getElementById("value").textContent = `${s.values[frame].toPrecision(5)} ${s.unit}`;
  }

  // controls --------------------------------------------------------------------------------------
  const button = document.getElementById("play"), slider = document.getElementById("scrub"), clock = document.getElementById("clock");
  slider.max = String(frames - 1);
  if (frames < 2) document.getElementById("controls").hidden = true;
  function show() {
    frame = end === start ? 0 : Math.max(0, Math.min(frames - 1, Math.round((frames - 1) * (now - start) / (end - start))));
    slider.value = String(frame);
    clock.textContent = `${now.toFixed(2)} s of ${end.toFixed(2)} s`;
    document.body.dataset.frame = String(frame);
    draw();
    drawChart();
  }
  function play(on) {
    playing = on;
    button.textContent = on ? "Pause" : "Play";
    if (on) { if (now >= end) now = start; last = performance.now(); requestAnimationFrame(tick); }
  }
  function tick(stamp) {
    if (!playing) return;
    now = Math.min(end, now + speed * Math.max(0, stamp - last) / 1000);
    last = stamp;
    if (now >= end && document.getElementById("loop").checked) now = start;
    show();
    if (now >= end) play(false); else requestAnimationFrame(tick);
  }
  button.onclick = () => play(!playing);
  slider.oninput = () => { play(false); now = time[+slider.value]; show(); };
  document.getElementById("speed").onchange = (event) => { speed = +event.target.value; };
  document.getElementById("follow").onchange = (event) => { scene.view.follow = event.target.checked; show(); };
  document.getElementById("trails").onchange = show;
  choice.onchange = drawChart;
  scene.onchange(show);
  addEventListener("keydown", (event) => {
    if (event.target.tagName === "SELECT") return;
    if (event.key === " ") { event.preventDefault(); play(!playing); }
  });
  const sizes = new ResizeObserver(show); // also when the page around a frame is laid out late
  [document.getElementById("scene"), chart].forEach((canvas) => sizes.observe(canvas));
  show();
})();
