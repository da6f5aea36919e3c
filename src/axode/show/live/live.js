// A mechanism that is simulated in the page, in real time or faster, under what its driver wants.
const $ = (id) => document.getElementById(id);
const data = JSON.parse(new TextDecoder().decode(await unpack($("live").textContent)));
const STEP = data.step, FRAME = 30; // [ms] of computing per frame at most
const MEMORY = 15, SAMPLES = 600; // seconds and samples of the curves
const SETTLING = 0.08, STEERING = 0.15; // [s] in which motors reach a speed and an angle

async function unpack(text) {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

// numbers -------------------------------------------------------------------------------------------
// The smallest x with A x nearest to b, rows of A given; nearly dependent rows share.
function leastNorm(A, b) {
  const n = A.length, m = n ? A[0].length : 0, size = Math.max(...A.flat().map(Math.abs), 1e-300);
  const G = A.map((row, i) => [...A.map((other, j) => row.reduce((sum, v, k) => sum + v * other[k], 0) + (i === j ? 1e-10 * size * size : 0)), b[i]]);
  for (let i = 0; i < n; i++) {
    let best = i;
    for (let k = i + 1; k < n; k++) if (Math.abs(G[k][i]) > Math.abs(G[best][i])) best = k;
    [G[i], G[best]] = [G[best], G[i]];
    for (let k = i + 1; k < n; k++) {
      const factor = G[k][i] / G[i][i];
      for (let j = i; j <= n; j++) G[k][j] -= factor * G[i][j];
    }
  }
  const y = new Array(n).fill(0);
  for (let i = n - 1; i >= 0; i--) y[i] = (G[i][n] - y.reduce((sum, v, j) => (j > i ? sum + G[i][j] * v : sum), 0)) / G[i][i];
  return Array.from({ length: m }, (_, k) => A.reduce((sum, row, i) => sum + row[k] * y[i], 0));
}

const module = await WebAssembly.compile(await unpack($("module").textContent));
const robot = new Robot(module, await WebAssembly.instantiate(module, {}));
const motors = data.motors.length;
const values = Object.fromEntries(data.parameters.map((p) => [p.name, p.value])); // as the sliders say
let wanted = [], mode = data.mode, lawOn = data.law, running = false, pace = 1, message = "";
let real = 1, debt = 0, last = 0;

function restart() { // parameters stay
  robot.reset();
  robot.set(values);
  robot.q.set(data.start.q); robot.nu.set(data.start.nu);
  message = robot.close() < 1e-9 ? robot.impossible() : "the loops do not close at the start with these parameters";
}

// Inputs under which the motors approach the wanted rates: accelerations are affine in the inputs.
function servo(rates) {
  const shares = [], u = robot.u;
  for (let k = 0; k < motors; k++) { u.fill(0); u[k] = 1; shares.push([...robot.call("input_force")]); }
  const response = () => { const a = robot.call("state_rate").subarray(robot.q.length); return shares.map((s) => s.reduce((sum, v, i) => sum + v * a[i], 0)); };
  u.fill(0);
  const still = response(), gains = shares.map(() => new Array(motors).fill(0));
  for (let k = 0; k < motors; k++) {
    u.fill(0); u[k] = 1;
    response().forEach((a, i) => { gains[i][k] = a - still[i]; });
  }
  const missing = shares.map((s, i) => (rates[i] - s.reduce((sum, v, k) => sum + v * robot.nu[k], 0)) / SETTLING - still[i]);
  return leastNorm(gains, missing);
}
const held = new Set();
const way = (axis) => (held.has(`${axis}+`) ? 1 : 0) - (held.has(`${axis}-`) ? 1 : 0);
const within = (value, most) => Math.max(-most, Math.min(most, value));
const steers = (k) => mode === "speed" && data.axes.some((axis) => axis.coordinates[k] >= 0); // by an angle
function commands() { // rates or torques of all motors: sliders, and keys that are held
  const full = data.motors.map((m) => (mode === "torque" ? m.torque : m.rate));
  const toAngle = (k, angle) => within((angle - robot.q[data.motors[k].coordinate]) / STEERING, full[k]);
  const asked = wanted.map((value, k) => (mode === "position" ? toAngle(k, value) : value));
  for (const axis of data.axes) {
    axis.rates.forEach((rate, k) => {
      if (steers(k)) asked[k] += way(axis.name) * data.angle * Math.sign(rate) * (axis.coordinates.length ? 1 : 0);
      else if (!axis.coordinates.length || axis.coordinates[k] >= 0) asked[k] += way(axis.name) * rate * Math.min(...full) * (axis.name === "turn" ? 0.35 : 0.7);
    });
  }
  return asked.map((value, k) => (steers(k) ? toAngle(k, data.motors[k].centre + within(value, data.angle)) : value));
}
function inputs() {
  robot.u.fill(0);
  if (lawOn) {
    robot.u.set(data.held); // a law that is a constant
    for (const [axis, name] of Object.entries(data.keys)) robot.set({ [name]: values[name] + way(axis) * data.keyed[name] });
    return;
  }
  const asked = commands(), u = mode !== "torque" && motors ? servo(asked) : asked;
  robot.u.fill(0);
  data.motors.forEach((m, k) => { robot.u[k] = within(u[k], m.most); });
}
function advance(seconds) {
  debt = Math.min(debt + seconds, Math.max(0.25 * pace, STEP)); // what was missed is not caught up with
  let steps = Math.floor(debt / STEP * (1 + 1e-12));
  if (pace < Infinity) debt -= steps * STEP;
  const begin = robot.time, clock = performance.now();
  while (steps > 0 && running) {
    const some = Math.min(steps, 16), program = lawOn && data.law_program ? "advance_law" : "advance";
    inputs();
    const status = robot.step(STEP, some, program);
    steps -= some;
    record();
    if (robot.inaccurate) message = `inaccurate: the energy is off by ${short(robot.energyError)} J, the motion is too fast for the steps`;
    if (status !== "running") {
      running = false;
      const reasons = { singular: "a singular posture was reached", switching: "formulas of time switch too often" };
      message = `${reasons[status] || "the motion left all numbers"}: reset`;
    }
    if (performance.now() - clock > FRAME) break;
  }
  return robot.time - begin;
}

// the picture ---------------------------------------------------------------------------------------
const ground = new Float32Array(data.scene.ground), poses = new Map();
function turned(place) { // by the stance of the ground, column by column
  const m = new Float32Array(16), p = robot.arrays.poses;
  for (let i = 0; i < 4; i++) for (let j = 0; j < 4; j++)
    for (let k = 0; k < 4; k++) m[4 * j + i] += ground[4 * k + i] * p[16 * place + 4 * k + j];
  return m;
}
function look() {
  robot.call("poses");
  for (let k = 0; k < data.scene.bodies; k++) poses.set(k, turned(k));
}
restart();
look();
const scene = makeScene($("scene"), data.scene, (body) => (body < 0 ? ground : poses.get(body)));
if (!scene) $("fault").textContent = "This browser shows no WebGL 2; the numbers below still move.";
const trails = data.touches.map(() => []);
function leaveTrails() {
  if (!scene) return;
  data.touches.forEach((touch, k) => {
    const p = scene.moved(poses.get(touch.body), touch.at, 1), n = touch.normal, path = trails[k];
    const down = n.map((v, i) => p[i] - touch.radius * v), size = path.length;
    if (size && Math.hypot(down[0] - path[size - 3], down[1] - path[size - 2], down[2] - path[size - 1]) < 0.02 * data.scene.size) return;
    path.push(...down);
    if (path.length > 4500) path.splice(0, 3);
  });
}
function draw() {
  const shown = $("trails").checked ? trails.filter((t) => t.length > 3).map((t) => scene.ribbon(new Float32Array(t))) : [];
  if (scene) scene.draw(shown);
}

// curves --------------------------------------------------------------------------------------------
const signals = robot.model.signals, times = new Float64Array(SAMPLES);
let chosen = data.signals.filter((name) => robot.signals.has(name)), kept = 0, series = [];
function watch() {
  series = chosen.map((name) => ({ name, unit: robot.signals.get(name).unit, values: new Float64Array(SAMPLES) }));
  kept = 0;
  $("chart").hidden = $("save").hidden = !series.length;
  $("legend").replaceChildren(...series.map(({ name, unit }, k) => {
    const item = document.createElement("span");
    item.className = k < CURVES.length ? "curve" : "curve dashed";
    item.style.setProperty("--colour", CURVES[k % CURVES.length]);
    item.append(document.createElement("span"), " ", document.createElement("span"));
    item.children[0].textContent = unit ? `${name} [${unit}]` : name;
    return item;
  }));
}
const due = () => !kept || robot.time - times[kept - 1] >= MEMORY / SAMPLES * Math.min(Math.max(pace, 1), 100);
function sample() {
  if (kept === SAMPLES) { times.copyWithin(0, 1); series.forEach((s) => s.values.copyWithin(0, 1)); kept--; }
  times[kept] = robot.time;
  const made = {};
  for (const s of series) {
    const { array, place } = robot.signals.get(s.name);
    s.values[kept] = (made[array] ??= robot.call(array))[place];
  }
  kept++;
}
function record() { if (due()) { sample(); look(); leaveTrails(); } }
function save() { // the curves as a table
  const cells = (names) => names.map((name) => (/[",\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name)).join(",");
  const rows = Array.from({ length: kept }, (_, i) => [times[i], ...series.map((s) => s.values[i])].join(","));
  const text = [cells(["time", ...series.map((s) => s.name)]), cells(["s", ...series.map((s) => s.unit)]), ...rows].join("\n") + "\n";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = `${robot.model.name}.csv`;
  link.click();
  URL.revokeObjectURL(link.href);
}
function show() {
  look();
  draw();
  if (series.length) drawCurves($("chart"), times, series, kept, undefined, Math.min(data.scene.size, 1));
  series.forEach((s, k) => { $("legend").children[k].children[1].textContent = kept ? latest(s.values.subarray(0, kept)) : ""; });
  $("clock").textContent = `${robot.time.toFixed(2)} s`;
  $("pace").textContent = running && Math.abs(real / pace - 1) > 0.1 ? `${real.toFixed(real < 9.95 ? 2 : 0)} × real time` : "";
  $("said").textContent = message;
  $("run").textContent = running ? "Pause" : "Run";
  document.body.dataset.time = robot.time.toFixed(3);
  document.body.dataset.status = robot.status;
  document.body.dataset.pivot = robot.smallestPivot;
  document.body.dataset.energyError = robot.energyError;
  data.motors.forEach((m, k) => { $(`motor${k}`).disabled = lawOn; $(`value${k}`).textContent = lawOn ? "law" : short(wanted[k]); });
}
function tick(stamp) {
  const seconds = Math.min(Math.max(stamp - last, 0) / 1000, 0.1);
  last = stamp;
  if (running) {
    const done = advance(seconds ? seconds * pace : 0);
    if (seconds > 0) real += 0.1 * (done / seconds - real);
    show();
  }
  requestAnimationFrame(tick);
}

// controls ------------------------------------------------------------------------------------------
function latest(curve) { // the last of a curve; what is nothing beside the others is zero
  const now = curve[curve.length - 1], most = curve.reduce((large, v) => Math.max(large, Math.abs(v)), 0);
  return Math.abs(now) <= Math.max(1e-6 * most, 1e-12 * Math.min(data.scene.size, 1)) ? "0.000" : now.toPrecision(4);
}
const short = (value) => Number(value.toPrecision(3));
function run(on) { running = on && robot.status === "running" && !robot.impossible(); debt = 0; last = performance.now(); real = Math.min(pace, 1000); show(); }
function reset() {
  restart();
  kept = 0; trails.forEach((t) => { t.length = 0; });
  motorRows();
  look(); sample(); show();
}
function row(parent, id, text, hint, low, high, value, then) { // a slider; `then` may refuse a value by returning another
  const label = document.createElement("label"), input = document.createElement("input"), output = document.createElement("span");
  label.append(text, input, output); label.title = hint;
  Object.assign(input, { type: "range", id, min: low, max: high, step: "any", value });
  output.id = id.replace("motor", "value").replace("parameter", "given");
  output.textContent = short(value);
  input.oninput = () => { input.value = then(+input.value) ?? input.value; output.textContent = short(+input.value); show(); };
  parent.append(label);
}
function motorRows() {
  $("motors").replaceChildren();
  wanted = data.motors.map((m) => (mode === "position" ? data.start.q[m.coordinate] : 0));
  data.motors.forEach((m, k) => {
    const named = robot.model.coordinates[m.coordinate], kind = steers(k) ? "angle" : mode;
    const most = { angle: data.angle, position: m.reach, speed: m.rate, torque: m.torque }[kind];
    const unit = { angle: "rad", position: m.unit === "N" ? "m" : "rad", speed: m.rate_unit, torque: m.unit }[kind];
    const hint = { angle: `wanted angle ${named}`, position: `wanted place ${named}`, speed: `wanted speed ${m.rate_name}`, torque: m.name }[kind], text = `${m.label} [${unit}]`;
    row($("motors"), `motor${k}`, text, hint, wanted[k] - most, wanted[k] + most, wanted[k], (value) => { wanted[k] = value; if (robot.time === 0) run(true); });
  });
}
function parameterRows() {
  $("parameters").replaceChildren();
  data.parameters.forEach((p, k) => row($("parameters"), `parameter${k}`, p.name, "parameter", p.low, p.high, values[p.name], (value) => change(p.name, value)));
}
function change(name, value) { // close the loops with another value, or keep what was
  const before = [...robot.q];
  robot.set({ [name]: value });
  message = robot.impossible();
  if (!message && robot.close() < 1e-9) { values[name] = value; return value; }
  robot.q.set(before);
  robot.set({ [name]: values[name] });
  message = `${name} = ${short(value)}: ${message || "the loops do not close"}`;
  return values[name];
}
motorRows(); parameterRows();
signals.forEach((s) => {
  const label = document.createElement("label"), box = document.createElement("input");
  Object.assign(box, { type: "checkbox", checked: chosen.includes(s.name) });
  box.onchange = () => { chosen = signals.map((x) => x.name).filter((name) => name === s.name ? box.checked : chosen.includes(name)); watch(); sample(); show(); };
  label.append(box, ` ${s.name}`);
  $("list").append(label);
});
$("run").onclick = () => run(!running);
$("reset").onclick = reset;
$("save").onclick = save;
$("speed").onchange = (event) => { pace = +event.target.value; real = Math.min(pace, 1000); debt = 0; };
if ($("defaults")) $("defaults").onclick = () => { data.parameters.forEach((p) => { values[p.name] = p.value; }); parameterRows(); reset(); };
$("follow").onchange = (event) => { if (scene) scene.view.follow = event.target.checked; show(); };
$("trails").onchange = show;
if ($("mode")) $("mode").value = mode;
if ($("mode")) $("mode").onchange = (event) => { mode = event.target.value; motorRows(); show(); };
if ($("law")) $("law").onchange = (event) => { lawOn = event.target.checked; show(); };
if ($("push")) $("push").onclick = () => push();
function push() { robot.nu.forEach((v, k) => { robot.nu[k] = v + data.push * (Math.random() - 0.5) * 2; }); show(); }

const KEYS = { ArrowUp: "ahead+", w: "ahead+", i: "ahead+", ArrowDown: "ahead-", s: "ahead-", k: "ahead-",
  ArrowLeft: "turn+", a: "turn+", j: "turn+", ArrowRight: "turn-", d: "turn-", l: "turn-", q: "sideways+", u: "sideways+", e: "sideways-", o: "sideways-" };
const ROBOT = { i: 1, k: -1, j: -1, l: 1 }; // of what does not roll: one motor up and down, which motor
let picked = 0;
function nudge(key) {
  const slider = $(`motor${picked}`), step = (slider.max - slider.min) / 20;
  if (key === "i" || key === "k") { slider.value = +slider.value + ROBOT[key] * step; slider.oninput(); }
  else picked = (picked + ROBOT[key] + motors) % motors;
  data.motors.forEach((_, k) => $(`motor${k}`).parentElement.classList.toggle("picked", k === picked));
}
function stop() { motorRows(); show(); }
const drives = (name) => name && (data.axes.some((a) => name.startsWith(a.name)) || Object.keys(data.keys).some((a) => name.startsWith(a)));
function press(name, down) { if (down) held.add(name); else held.delete(name); if (down && !running) run(true); }
addEventListener("keydown", (event) => {
  if (event.target.matches("select") || (event.target.matches("summary, input[type=checkbox]") && event.key === " ")) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const name = KEYS[event.key] || KEYS[event.key.toLowerCase()];
  const slider = event.target.matches("input[type=range]");
  const button = event.target.tagName === "BUTTON", low = event.key.toLowerCase();
  if (event.key === " " && !button) { event.preventDefault(); if (motors && !lawOn) stop(); else run(!running); }
  else if (event.key === "Enter" && !button && !event.target.matches("summary, a")) { event.preventDefault(); run(!running); }
  else if (event.key === "r" || event.key === "Backspace") { event.preventDefault(); reset(); }
  else if (low in ROBOT && motors && !data.axes.length && !lawOn) nudge(low);
  else if (event.key === "p") push();
  else if (event.key === "+" && scene) { scene.zoom(0.9); show(); }
  else if (event.key === "-" && scene) { scene.zoom(1.1); show(); }
  else if (drives(name) && !(slider && event.key.startsWith("Arrow"))) { event.preventDefault(); press(name, true); }
  else if (event.target === $("scene") && event.key.startsWith("Arrow") && scene) {
    event.preventDefault();
    scene.turn({ ArrowLeft: 0.1, ArrowRight: -0.1 }[event.key] || 0, { ArrowUp: 0.08, ArrowDown: -0.08 }[event.key] || 0);
    show();
  }
});
addEventListener("keyup", (event) => { const name = KEYS[event.key] || KEYS[event.key.toLowerCase()]; if (name) press(name, false); });
addEventListener("blur", () => held.clear());
for (const button of document.querySelectorAll("[data-hold]")) {
  button.onpointerdown = (event) => { event.preventDefault(); press(button.dataset.hold, true); };
  button.onpointerup = button.onpointerleave = button.onpointercancel = () => press(button.dataset.hold, false);
  button.onkeydown = (event) => { if (event.key === " " || event.key === "Enter") { event.preventDefault(); press(button.dataset.hold, true); } };
  button.onkeyup = () => press(button.dataset.hold, false);
}
if (scene) scene.onchange(show);
const sizes = new ResizeObserver(show); // also when the page around a frame is laid out late
[$("scene"), $("chart")].forEach((canvas) => sizes.observe(canvas));
watch(); sample(); show();
// For tests and for the curious: `axode.advance(2)` simulates two seconds, as fast as it can.
function skip(seconds) {
  const was = running, end = robot.time + seconds;
  for (running = true; running && robot.time < end - STEP / 2; debt = 0) advance(Math.max(Math.min(end - robot.time, 0.02), STEP));
  running = running && was;
  look(); show();
  return robot.time;
}
globalThis.axode = { robot, run, reset, data, change, advance: skip };
requestAnimationFrame((stamp) => { last = stamp; tick(stamp); });
if (data.play && !matchMedia("(prefers-reduced-motion: reduce)").matches) run(true);
