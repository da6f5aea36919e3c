// Curves over time with axes and a grid.
"use strict";
const CURVES = ["#1a47ba", "#d05f16", "#128f61", "#aa4a97", "#7a5b00", "#0f8ea3", "#b3261e", "#5b5fc7"];

// Round numbers from low to high, about `count` of them.
function roundTicks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((s) => s * power >= rough) || 10), ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) ticks.push(k * step);
  return { ticks, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}
function tickText(value, digits) {
  const size = Math.abs(value);
  return size && (size >= 1e5 || digits > 6) ? value.toExponential(1) : value.toFixed(Math.min(digits, 8));
}

// Draws `series`, each { values, name, unit }, over `times`; all have `count` numbers. `now` is marked if it is given.
// What changes by less than a 1e-9th of `size`, or of itself, is rounding and drawn flat.
function drawCurves(canvas, times, series, count, now, size = 1) {
  const pen = canvas.getContext("2d"), scale = devicePixelRatio, w = canvas.clientWidth, h = canvas.clientHeight;
  if (canvas.width !== Math.round(w * scale)) canvas.width = Math.round(w * scale);
  if (canvas.height !== Math.round(h * scale)) canvas.height = Math.round(h * scale);
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, w, h);
  let low = Infinity, high = -Infinity;
  for (const { values } of series)
    for (let i = 0; i < count; i++) { const v = values[i]; if (Number.isFinite(v)) { if (v < low) low = v; if (v > high) high = v; } }
  if (!(high >= low)) { low = 0; high = 1; }
  const most = Math.max(Math.abs(low), Math.abs(high)), flat = high - low <= 1e-9 * Math.max(size, most);
  const pad = flat ? (most > 1e-9 * size ? most * 0.1 : size) : (high - low) * 0.08;
  low -= pad; high += pad;
  const from = count ? times[0] : 0, to = count > 1 ? Math.max(times[count - 1], from + 1e-9) : from + 1;
  const left = 70, right = w - 12, top = 8, bottom = h - 24;
  const X = (t) => left + (right - left) * (t - from) / (to - from), Y = (v) => bottom - (bottom - top) * (v - low) / (high - low);
  pen.font = "12px sans-serif"; pen.fillStyle = "#57606a"; pen.lineWidth = 1;
  const rows = roundTicks(low, high, Math.max(2, (bottom - top) / 34)), columns = roundTicks(from, to, Math.max(2, (right - left) / 90));
  const line = (x0, y0, x1, y1, colour) => { pen.strokeStyle = colour; pen.beginPath(); pen.moveTo(x0, y0); pen.lineTo(x1, y1); pen.stroke(); };
  pen.textAlign = "right";
  for (const v of rows.ticks) { line(left, Y(v), right, Y(v), "#e6e9ec"); pen.fillText(tickText(v, rows.digits), left - 6, Y(v) + 4); }
  pen.textAlign = "center";
  for (const t of columns.ticks) {
    line(X(t), top, X(t), bottom, "#eff1f3");
    if (X(t) < right - 14) pen.fillText(tickText(t, columns.digits) + " s", X(t), h - 6);
  }
  line(left, bottom, right, bottom, "#c3cad1"); line(left, top, left, bottom, "#c3cad1");
  pen.save(); pen.beginPath(); pen.rect(left, top - 2, right - left, bottom - top + 4); pen.clip();
  series.forEach(({ values }, k) => {
    pen.strokeStyle = CURVES[k % CURVES.length]; pen.lineWidth = 1.6;
    pen.setLineDash(k >= CURVES.length || series.some((s, j) => j < k && s.values[count - 1] === values[count - 1]) ? [6, 5] : []); // one over another
    pen.beginPath();
    for (let i = 0, down = false; i < count; i++) {
      const ok = Number.isFinite(values[i]);
      if (ok) down ? pen.lineTo(X(times[i]), Y(values[i])) : pen.moveTo(X(times[i]), Y(values[i]));
      down = ok;
    }
    pen.stroke();
  });
  pen.setLineDash([]);
  pen.restore();
  if (now !== undefined) line(X(now), top, X(now), bottom, "#d05f16");
}
