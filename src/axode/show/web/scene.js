// A mechanism in three dimensions, drawn by the page itself: nothing is fetched.
"use strict";
// Arrays of numbers out of text.
function bytesOf(text) { return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer; }
const floatsOf = (text) => new Float32Array(bytesOf(text));

// Draws `data.meshes` on `canvas`; `pose(body)` gives the 4 x 4 matrix of a body, column by column, and of the
// ground for -1. Returns nothing where the browser has no WebGL 2.
function makeScene(canvas, data, pose) {
  const gl = canvas.getContext("webgl2", { alpha: false, antialias: true, stencil: true, preserveDrawingBuffer: true });
  if (!gl) return null;

  // 4 x 4 matrices, column by column -----------------------------------------------------------
  function product(a, b) {
    const c = new Float32Array(16);
    for (let i = 0; i < 4; i++) for (let j = 0; j < 4; j++)
      for (let k = 0; k < 4; k++) c[4 * j + i] += a[4 * k + i] * b[4 * j + k];
    return c;
  }
  const IDENTITY = new Float32Array([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const unit = (a) => { const n = Math.hypot(...a) || 1; return a.map((v) => v / n); };
  const moved = (m, p, w) => [0, 1, 2].map((i) => m[i] * p[0] + m[4 + i] * p[1] + m[8 + i] * p[2] + w * m[12 + i]);

  // programs of the graphics card --------------------------------------------------------------
  function program(vertex, fragment) {
    const p = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, "#version 300 es\nprecision highp float;\n" + text);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(p, shader);
    }
    gl.bindAttribLocation(p, 0, "point");
    gl.bindAttribLocation(p, 1, "normal");
    gl.linkProgram(p);
    return new Proxy({}, { get: (_, name) => name === "use" ? () => gl.useProgram(p) : gl.getUniformLocation(p, name) });
  }
  const solid = program(
    `in vec3 point, normal; uniform mat4 place, view; out vec3 n, p;
     void main() { vec4 w = place * vec4(point, 1.0); p = w.xyz; n = mat3(place) * normal; gl_Position = view * w; }`,
    `in vec3 n, p; out vec4 shade; uniform vec3 colour, eye, sun;
     void main() { vec3 m = normalize(gl_FrontFacing ? n : -n); vec3 h = normalize(normalize(eye - p) + sun);
       float light = 0.52 + 0.14 * m.z + 0.42 * max(dot(m, sun), 0.0);
       shade = vec4(colour * light + 0.15 * pow(max(dot(m, h), 0.0), 24.0), 1.0); }`);
  const flat = program(
    `in vec3 point; uniform mat4 place, view; void main() { gl_Position = view * place * vec4(point, 1.0); }`,
    `uniform vec4 colour; out vec4 shade; void main() { shade = colour; }`);
  const ground = program(
    `in vec3 point; uniform mat4 place, view; out vec3 p; out vec2 s;
     void main() { vec4 w = place * vec4(point, 1.0); p = w.xyz; s = point.xy; gl_Position = view * w; }`,
    `in vec3 p; in vec2 s; out vec4 shade; uniform float spacing, reach; uniform vec3 middle;
     void main() { vec2 g = s / spacing; vec2 w = fwidth(g) + 1e-6;
       vec2 away = abs(fract(g + 0.5) - 0.5) / w; float line = clamp(1.2 - min(away.x, away.y), 0.0, 1.0);
       line *= clamp(0.25 / max(w.x, w.y), 0.0, 1.0);
       float fade = clamp(1.0 - length(p - middle) / reach, 0.0, 1.0);
       vec3 tint = mix(vec3(0.906, 0.914, 0.925), vec3(0.804, 0.82, 0.839), line);
       shade = vec4(mix(vec3(0.969, 0.973, 0.98), tint, fade), 1.0); }`);

  function buffer(values, target) {
    const b = gl.createBuffer();
    gl.bindBuffer(target, b);
    gl.bufferData(target, values, target === gl.ARRAY_BUFFER && !values ? gl.DYNAMIC_DRAW : gl.STATIC_DRAW);
    return b;
  }
  const meshes = data.meshes.map((mesh) => {
    const triangles = new Uint16Array(bytesOf(mesh.triangles));
    const points = Float32Array.from(new Uint16Array(bytesOf(mesh.vertices)), (v, i) => mesh.low[i % 3] + mesh.step * v);
    const normals = Float32Array.from(new Int8Array(bytesOf(mesh.normals)));
    return { body: mesh.body, colour: mesh.colour.map((c) => c / 255), count: triangles.length,
      points: buffer(points, gl.ARRAY_BUFFER), normals: buffer(normals, gl.ARRAY_BUFFER),
      triangles: buffer(triangles, gl.ELEMENT_ARRAY_BUFFER), reach: reachOf(points) };
  });
  function reachOf(v) {
    const low = [1e9, 1e9, 1e9], high = [-1e9, -1e9, -1e9];
    for (let i = 0; i < v.length; i++) { low[i % 3] = Math.min(low[i % 3], v[i]); high[i % 3] = Math.max(high[i % 3], v[i]); }
    return [low, high];
  }
  function box() { // around all meshes
    const low = [1e9, 1e9, 1e9], high = [-1e9, -1e9, -1e9];
    for (const mesh of meshes) {
      const m = pose(mesh.body);
      for (let k = 0; k < 8; k++) {
        const p = moved(m, [0, 1, 2].map((i) => mesh.reach[(k >> i) & 1][i]), 1);
        for (let i = 0; i < 3; i++) { low[i] = Math.min(low[i], p[i]); high[i] = Math.max(high[i], p[i]); }
      }
    }
    return [low, high];
  }
  const home = box(), middle = [0, 1, 2].map((i) => (home[0][i] + home[1][i]) / 2);
  const floor = data.floors.length ? data.floors[0]
    : { body: -1, point: [0, 0, home[0][2]], normal: [0, 0, 1] };
  const square = buffer(new Float32Array([-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0]), gl.ARRAY_BUFFER);
  const lines = gl.createBuffer();
  function ribbon(track) { // a line with a width, lying on the floor
    const n = floor.body < 0 ? floor.normal : [0, 0, 1], half = 0.008 * data.size, strip = new Float32Array(2 * track.length);
    let side = [0, 0, 0];
    for (let i = 0; i < track.length / 3; i++) {
      const a = Math.max(i - 1, 0), b = Math.min(i + 1, track.length / 3 - 1);
      const d = [0, 1, 2].map((k) => track[3 * b + k] - track[3 * a + k]);
      if (Math.hypot(...d) > 1e-9 * data.size) side = unit(cross(n, d)).map((v) => v * half);
      for (let k = 0; k < 3; k++) {
        const p = track[3 * i + k] + n[k] * 2e-3 * data.size;
        strip[6 * i + k] = p + side[k];
        strip[6 * i + 3 + k] = p - side[k];
      }
    }
    return strip;
  }
  // the eye -----------------------------------------------------------------------------------
  const [azimuth, elevation] = (data.view || []).length ? data.view : [-0.96, 0.38];
  const camera = { azimuth, elevation, target: middle.slice(),
    distance: 2.1 * Math.max(Math.hypot(...[0, 1, 2].map((i) => home[1][i] - home[0][i])), 1e-3) };
  const SUN = unit([-0.42, -0.4, 0.82]);
  const view = { follow: true };
  const offset = () => {
    if (!view.follow) return [0, 0, 0];
    const b = box(), n = floor.body < 0 ? moved(pose(-1), floor.normal, 0) : [0, 0, 1];
    const [dx, dy] = [0, 1].map((i) => (b[0][i] + b[1][i]) / 2 - middle[i]);
    return [dx, dy, Math.abs(n[2]) > 0.2 ? -(n[0] * dx + n[1] * dy) / n[2] : 0]; // as high over the floor as before
  };
  function eye() {
    const shift = offset(), target = camera.target.map((v, i) => v + shift[i]);
    const ce = Math.cos(camera.elevation), back = [ce * Math.cos(camera.azimuth), ce * Math.sin(camera.azimuth), Math.sin(camera.elevation)];
    const right = [-Math.sin(camera.azimuth), Math.cos(camera.azimuth), 0], up = cross(back, right);
    const at = target.map((v, i) => v + camera.distance * back[i]);
    const look = new Float32Array([right[0], up[0], back[0], 0, right[1], up[1], back[1], 0, right[2], up[2], back[2], 0,
      -dot(right, at), -dot(up, at), -dot(back, at), 1]);
    const f = 1 / Math.tan(0.26), near = camera.distance / 50, far = camera.distance * 60;
    const lens = new Float32Array([f * canvas.height / canvas.width, 0, 0, 0, 0, f, 0, 0,
      0, 0, (far + near) / (near - far), -1, 0, 0, 2 * far * near / (near - far), 0]);
    return { view: product(lens, look), at, target, right, up };
  }

  // drawing -----------------------------------------------------------------------------------
  function bind(points, normals) {
    gl.bindBuffer(gl.ARRAY_BUFFER, points);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 3, gl.FLOAT, false, 0, 0);
    if (!normals) { gl.disableVertexAttribArray(1); return; }
    gl.bindBuffer(gl.ARRAY_BUFFER, normals);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribPointer(1, 3, gl.FLOAT, false, 0, 0);
  }
  function floorFrame() {
    const m = pose(floor.body), n = moved(m, floor.normal, 0), p = moved(m, floor.point, 1);
    const side = Math.abs(n[0]) < 0.9 ? [1, 0, 0] : [0, 1, 0], v = unit(cross(n, side)), u = cross(v, n);
    return { n, p, u, v };
  }
  function drawFloor(e, f) {
    const reach = 6 * camera.distance;
    // The square lies under the eye's target, its own coordinates counted from the floor's point.
    const a = dot(e.target.map((v, i) => v - f.p[i]), f.u), b = dot(e.target.map((v, i) => v - f.p[i]), f.v);
    const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]].flatMap(([x, y]) => [a + x * reach, b + y * reach, 0]);
    gl.bindBuffer(gl.ARRAY_BUFFER, square);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(corners), gl.DYNAMIC_DRAW);
    bind(square);
    ground.use();
    gl.uniformMatrix4fv(ground.place, false, new Float32Array([...f.u, 0, ...f.v, 0, ...f.n, 0, ...f.p, 1]));
    gl.uniformMatrix4fv(ground.view, false, e.view);
    gl.uniform1f(ground.spacing, data.spacing);
    gl.uniform1f(ground.reach, reach);
    gl.uniform3fv(ground.middle, e.target);
    gl.drawArrays(gl.TRIANGLE_FAN, 0, 4);
  }
  function drawShadows(e, f) {
    const rise = dot(SUN, f.n);
    if (rise < 0.05) return;
    const m = new Float32Array(16), d = dot(f.p, f.n);
    for (let i = 0; i < 3; i++) {
      for (let j = 0; j < 3; j++) m[4 * j + i] = (i === j ? 1 : 0) - SUN[i] * f.n[j] / rise;
      m[12 + i] = SUN[i] * d / rise + f.n[i] * 1e-3 * data.size;
    }
    m[15] = 1;
    flat.use();
    gl.uniform4f(flat.colour, 0.1, 0.12, 0.15, 0.26);
    gl.uniformMatrix4fv(flat.view, false, e.view);
    gl.enable(gl.BLEND); gl.enable(gl.STENCIL_TEST); gl.depthMask(false);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
    gl.stencilFunc(gl.EQUAL, 0, 255); gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR); // dark once, not twice
    for (const mesh of meshes) {
      bind(mesh.points);
      gl.uniformMatrix4fv(flat.place, false, product(m, pose(mesh.body)));
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, mesh.triangles);
      gl.drawElements(gl.TRIANGLES, mesh.count, gl.UNSIGNED_SHORT, 0);
    }
    gl.disable(gl.BLEND); gl.disable(gl.STENCIL_TEST); gl.depthMask(true);
  }
  function drawSolids(e) {
    solid.use();
    gl.uniformMatrix4fv(solid.view, false, e.view);
    gl.uniform3fv(solid.eye, e.at);
    gl.uniform3fv(solid.sun, SUN);
    for (const mesh of meshes) {
      bind(mesh.points, mesh.normals);
      gl.uniformMatrix4fv(solid.place, false, pose(mesh.body));
      gl.uniform3fv(solid.colour, mesh.colour);
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, mesh.triangles);
      gl.drawElements(gl.TRIANGLES, mesh.count, gl.UNSIGNED_SHORT, 0);
    }
  }
  function drawLine(e, points, colour, mode) {
    gl.bindBuffer(gl.ARRAY_BUFFER, lines);
    gl.bufferData(gl.ARRAY_BUFFER, points, gl.DYNAMIC_DRAW);
    bind(lines);
    flat.use();
    gl.uniformMatrix4fv(flat.place, false, IDENTITY);
    gl.uniformMatrix4fv(flat.view, false, e.view);
    gl.uniform4fv(flat.colour, colour);
    gl.drawArrays(mode, 0, points.length / 3);
  }
  const TRACKS = [[0.10, 0.28, 0.73, 1], [0.82, 0.37, 0.09, 1], [0.07, 0.56, 0.38, 1], [0.67, 0.29, 0.59, 1]];
  // Draws everything; `strips` are ribbons, each cut to what of it is to be seen.
  function draw(strips) {
    const width = Math.round(canvas.clientWidth * devicePixelRatio), height = Math.round(canvas.clientHeight * devicePixelRatio);
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0.969, 0.973, 0.98, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    const e = eye(), f = floorFrame();
    drawFloor(e, f);
    drawShadows(e, f);
    drawSolids(e);
    strips.forEach((strip, k) => drawLine(e, strip, TRACKS[k % TRACKS.length], gl.TRIANGLE_STRIP));
    for (const cord of data.cords)
      drawLine(e, new Float32Array(cord.ends.flatMap((p, i) => moved(pose(cord.bodies[i]), p, 1))), [0.55, 0.3, 0.1, 1], gl.LINES);
  }

  // Turn by dragging, shift with the right button, two fingers or the shift key, zoom with the wheel.
  function turn(dx, dy) {
    camera.azimuth -= dx;
    camera.elevation = Math.max(-1.55, Math.min(1.55, camera.elevation + dy));
  }
  function shift(dx, dy) {
    const e = eye(), step = camera.distance / canvas.clientHeight * 0.5;
    for (let i = 0; i < 3; i++) camera.target[i] += step * (e.up[i] * dy - e.right[i] * dx);
  }
  function zoom(factor) { camera.distance *= factor; }
  const fingers = new Map();
  let changed = () => {};
  canvas.onpointerdown = (event) => {
    fingers.set(event.pointerId, [event.clientX, event.clientY, event.button || event.shiftKey]);
    canvas.setPointerCapture(event.pointerId);
  };
  canvas.onpointerup = canvas.onpointercancel = (event) => { fingers.delete(event.pointerId); };
  canvas.oncontextmenu = (event) => event.preventDefault();
  canvas.onpointermove = (event) => {
    const grip = fingers.get(event.pointerId);
    if (!grip) return;
    const dx = event.clientX - grip[0], dy = event.clientY - grip[1];
    if (fingers.size > 1) {
      const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const away = (x, y) => Math.max(Math.hypot(x - other[0], y - other[1]), 1);
      zoom(away(grip[0], grip[1]) / away(event.clientX, event.clientY));
      shift(dx / 2, dy / 2);
    } else if (grip[2]) shift(dx, dy);
    else turn(dx * 0.008, dy * 0.008);
    grip[0] = event.clientX; grip[1] = event.clientY;
    changed();
  };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(event.deltaY * 0.001));
    changed();
  }, { passive: false });

  return { draw, ribbon, turn, zoom, view, camera, moved, onchange(then) { changed = then; } };
}
