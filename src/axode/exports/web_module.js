// A mechanism in WebAssembly: its state, its functions and exact steps, by name. Made by Axode.

const STATUS = ["running", "finished", "event", "not finite", "underflow", "singular", "left", "stiff", "open"];

const TURNS = 1000; // of the loop at most, for every step: formulas of time that switch divide steps

export class Robot {
  /** Wrap an instance of the module; `load` makes one. */
  constructor(module, instance) {
    const [text] = WebAssembly.Module.customSections(module, "axode");
    this.facts = JSON.parse(new TextDecoder().decode(text));
    this.model = this.facts.model;
    this.exports = instance.exports;
    const array = (name) => {
      const place = this.facts.buffers[name];
      return place ? new Float64Array(this.exports.memory.buffer, place.address, place.size) : new Float64Array(0);
    };
    this.arrays = Object.fromEntries(Object.keys(this.facts.buffers).map((name) => [name, array(name)]));
    for (const name of ["q", "nu", "u", "p"]) this[name] = array(name);
    this.places = new Map();
    const add = (names, values) => names.forEach((name, k) => this.places.set(name, [values, k]));
    add(this.model.coordinates, this.q);
    add(this.model.speeds, this.nu);
    add(this.model.inputs, this.u);
    if (this.p.length) add(Object.keys(this.model.parameters), this.p);
    this.signals = new Map(this.model.signals.map((s) => [s.name, s]));
    this.reset();
  }

  /** Return to the home configuration, at rest, all inputs zero, parameters as they were. */
  reset() {
    for (const { state } of Object.values(this.facts.programs))
      for (const name of Object.values(state)) this.arrays[name].fill(0);
    if (this.p.length) this.p.set(Object.values(this.model.parameters));
    this.q.set(this.model.home);
    this.nu.fill(0);
    this.u.fill(0);
    this.status = "running";
    this.close();
  }

  /** Energy less that of the start and the work since [J], from the last `reset`, `set` or `close` on. */
  get energyError() {
    if (!this.audit) return 0;
    const [kinetic, potential] = this.call("energy"), [supplied, lost] = this.arrays.w;
    return kinetic + potential - supplied + lost - this.audit.due;
  }

  /** Whether that is more than a 1e-5th of the largest energy since then. */
  get inaccurate() {
    if (!this.audit) return false;
    const off = Math.abs(this.energyError), [kinetic, potential] = this.call("energy");
    return !(off <= 1e-5 * this.audit.largest + 1e-12 * (Math.abs(kinetic) + Math.abs(potential)) + 1e-12);
  }

  /** The smallest pivot of the solves in the last step: singular at zero; one if there is none. */
  get smallestPivot() {
    const near = this.near && this.arrays[this.near];
    return near ? Math.abs(near[0]) : 1;
  }

  /** Why no mechanism can have the present parameters; nothing if one can. */
  impossible() {
    if (!this.exports.parameter_faults) return "";
    const found = this.call("parameter_faults").findIndex((flag) => flag !== 0);
    return found < 0 ? "" : this.model.checks[found];
  }

  count() { // energies before and after steps
    if (!this.exports.energy || !this.arrays.w) return;
    const [kinetic, potential] = this.call("energy"), [supplied, lost] = this.arrays.w;
    if (!this.audit) this.audit = { due: kinetic + potential - supplied + lost, potential, supplied, lost, largest: 0 };
    const a = this.audit, seen = [kinetic, potential - a.potential, supplied - a.supplied, lost - a.lost];
    a.largest = Math.max(a.largest, ...seen.map(Math.abs));
  }

  /** Time [s]. */
  get time() { return this.arrays.t[0]; }
  set time(value) { this.arrays.t[0] = value; }

  /** Set coordinates, independent speeds, inputs and parameters by name. */
  set(values) {
    const unknown = Object.keys(values).filter((name) => !this.places.has(name));
    if (unknown.length) throw new RangeError(`${this.model.name} has no ${unknown.join(", ")}; known: ${[...this.places.keys()].join(", ")}`);
    for (const [name, value] of Object.entries(values)) {
      const [array, place] = this.places.get(name);
      array[place] = value;
      if (array !== this.u) this.audit = null;
    }
  }

  /** The value of a coordinate, speed, input, parameter or signal, at the present state. */
  get(name) {
    const found = this.places.get(name);
    if (found) return found[0][found[1]];
    const signal = this.signals.get(name);
    if (!signal) throw new RangeError(`${this.model.name} has no ${name}; known: ${[...this.places.keys(), ...this.signals.keys()].join(", ")}`);
    return this.call(signal.array)[signal.place];
  }

  /** Evaluate a function at the present state; the array is overwritten by the next call. */
  call(name) {
    if (name in { q: 1, nu: 1, u: 1, p: 1 }) return this[name];
    const about = this.facts.functions[name];
    if (!about) throw new RangeError(`the module has no function ${name}; known: ${Object.keys(this.facts.functions).join(", ")}`);
    this.exports[name]();
    return this.arrays[about.outputs[0]];
  }

  /** Bring the coordinates onto the constraints; returns the last change, small if they closed. */
  close() {
    this.audit = null;
    if (!this.exports.projection) return 0;
    let change = Infinity;
    for (let k = 0; k < 50 && change > 1e-13; k++) {
      const next = this.call("projection");
      change = 0;
      for (let i = 0; i < next.length; i++) change = Math.max(change, Math.abs(next[i] - this.q[i]) / (1 + Math.abs(next[i])));
      this.q.set(next);
    }
    return change;
  }

  /** Take `count` steps of Runge-Kutta of order four, `length` seconds each; returns the status.
   *  Inputs are cut to the limits of the motors. */
  step(length, count = 1, program = "advance") {
    this.model.limits.forEach((most, k) => {
      if (most !== null) this.u[k] = Math.max(-most, Math.min(most, this.u[k]));
    });
    this.count();
    const begin = this.time, { given, state } = this.facts.programs[program];
    const put = (name, value) => { if (name in given) this.arrays[given[name]][0] = value; };
    const start = (name) => { if (name in state) this.arrays[state[name]][0] = 0; };
    put("h", length); put("t0", begin); put("t_end", begin + count * length); put("n_steps", count);
    put("save_steps", 1e9); put("least_pivot", this.model.least_pivot);
    ["step", "status", "index", "seen"].forEach(start);
    this.exports[program](TURNS * count);
    const code = this.arrays[state.status][0];
    this.status = code === 1 ? "running" : code === 0 ? "switching" : STATUS[code] || "stopped";
    this.near = state.near;
    this.count();
    return this.status;
  }
}

/** Load the module: from the file beside this one, from an address, or from its bytes. */
export async function load(source = new URL(MODULE_FILE, import.meta.url)) {
  let bytes = source;
  if (source instanceof URL && source.protocol === "file:" && typeof process !== "undefined") {
    const { readFile } = await import("node:fs/promises");
    bytes = await readFile(source);
  } else if (typeof source === "string" || source instanceof URL) {
    bytes = await (await fetch(source)).arrayBuffer();
  }
  const module = await WebAssembly.compile(bytes);
  return new Robot(module, await WebAssembly.instantiate(module, {}));
}
