/** A signal: a number with a name and a unit that is computed from the state. */
export interface Signal {
  name: string;
  unit: string;
  kind: string;
  array: string;
  place: number;
}

/** Names, units and start values of the mechanism. */
export interface About {
  name: string;
  coordinates: string[];
  speeds: string[];
  inputs: string[];
  motors: number;
  limits: (number | null)[];
  units: Record<string, string>;
  parameters: Record<string, number>;
  home: number[];
  bodies: string[];
  contacts: string[];
  least_pivot: number;
  checks: string[];
  signals: Signal[];
}

/** A mechanism: its state, its functions and exact steps. */
export class Robot {
  constructor(module: WebAssembly.Module, instance: WebAssembly.Instance);
  readonly model: About;
  /** Coordinates, independent speeds, inputs and parameters: views of the module's memory. */
  readonly q: Float64Array;
  readonly nu: Float64Array;
  readonly u: Float64Array;
  readonly p: Float64Array;
  readonly signals: Map<string, Signal>;
  /** "running", or why the last steps stopped. */
  status: string;
  /** Time [s]. */
  time: number;
  /** Return to the home configuration, at rest. */
  reset(): void;
  /** Set coordinates, independent speeds, inputs and parameters by name. */
  set(values: Record<string, number>): void;
  /** The value of a coordinate, speed, input, parameter or signal. */
  get(name: string): number;
  /** Evaluate a function at the present state; the next call overwrites the result. */
  call(name: string): Float64Array;
  /** Bring the coordinates onto the constraints; returns the last change. */
  close(): number;
  /** Energy less that of the start and the work since [J], from the last `reset`, `set` or `close` on. */
  readonly energyError: number;
  /** Whether that is more than a 1e-5th of the largest energy since then. */
  readonly inaccurate: boolean;
  /** The smallest pivot of the solves in the last step: singular at zero. */
  readonly smallestPivot: number;
  /** Why no mechanism can have the present parameters; "" if one can. */
  impossible(): string;
  /** Take steps of so many seconds each; returns the status. A page's law is "advance_law". */
  step(length: number, count?: number, program?: string): string;
}

/** Load the module: from the file beside this one, from an address, or from its bytes. */
export function load(source?: string | URL | BufferSource): Promise<Robot>;
