"""Functions of models on arrays of JAX, which differentiates through them twice.

Calls from compiled programs of JAX to Python, on the memory of JAX's own arrays.

XLA hands a function the address of a structure that holds the addresses of arguments and
results, on a GPU its stream as well. Nothing is copied, and nothing comes back from a GPU. Layouts
are those of XLA's foreign function interface, `xla/ffi/api/c_api.h` of jaxlib.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from axode.errors import InvalidArgument, NotApplicable, install_command
from axode.model.model_parts import facts_of
from axode.model.wrappers.array_function import ArrayFunction, Names

TARGET = "axode"
METADATA = 1  # kind of an extension: XLA asks for versions
EXECUTE = 3  # stage of a call; those before it need nothing
INTERNAL = 13  # code of an error
TYPES: dict[int, np.dtype[Any]] = {11: np.dtype(np.float32), 12: np.dtype(np.float64)}

Foreign = Callable[[Sequence[Any], Any, int | None], None]  # arguments, result, stream
_HEAD: Any = [("size_of_this", ctypes.c_size_t), ("extension", ctypes.c_void_p)]


class _Version(ctypes.Structure):
    _fields_ = [*_HEAD, ("major", ctypes.c_int), ("minor", ctypes.c_int)]


class _Metadata(ctypes.Structure):
    _fields_ = [("size_of_this", ctypes.c_size_t), ("version", _Version)]


class _Extension(ctypes.Structure):
    _fields_ = [
        ("size_of_this", ctypes.c_size_t),
        ("kind", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("metadata", ctypes.POINTER(_Metadata)),
    ]


class _Api(ctypes.Structure):
    _fields_ = [
        *_HEAD,
        ("version", _Version),
        ("internal", ctypes.c_void_p),
        ("create_error", ctypes.c_void_p),
        ("others", ctypes.c_void_p * 3),
        ("get_stream", ctypes.c_void_p),
    ]


class _ErrorArguments(ctypes.Structure):
    _fields_ = [*_HEAD, ("message", ctypes.c_char_p), ("code", ctypes.c_int)]


class _StreamArguments(ctypes.Structure):
    _fields_ = [*_HEAD, ("context", ctypes.c_void_p), ("stream", ctypes.c_void_p)]


class _Buffer(ctypes.Structure):
    _fields_ = [
        *_HEAD,
        ("type", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
    ]

    def layout(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and type."""
        return tuple(self.shape[k] for k in range(self.rank)), TYPES[self.type]


class _Buffers(ctypes.Structure):
    _fields_ = [
        *_HEAD,
        ("count", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("items", ctypes.POINTER(ctypes.POINTER(_Buffer))),
    ]

    def each(self) -> list[_Buffer]:
        """All of them."""
        return [self.items[k].contents for k in range(self.count)]


class _Scalar(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("value", ctypes.POINTER(ctypes.c_int64))]


class _Attributes(ctypes.Structure):
    _fields_ = [
        *_HEAD,
        ("count", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("names", ctypes.c_void_p),
        ("items", ctypes.POINTER(ctypes.POINTER(_Scalar))),
    ]


class _Frame(ctypes.Structure):
    _fields_ = [
        ("size_of_this", ctypes.c_size_t),
        ("extension", ctypes.POINTER(_Extension)),
        ("api", ctypes.POINTER(_Api)),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("arguments", _Buffers),
        ("results", _Buffers),
        ("attributes", _Attributes),
    ]


_HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Frame))
_FUNCTIONS: list[Foreign] = []  # by number; compiled programs hold the numbers


def number_of(function: Foreign) -> int:
    """Number by which compiled programs know a function, for as long as the process lives."""
    _register()
    _FUNCTIONS.append(function)
    return len(_FUNCTIONS) - 1


def foreign_call(number: int, result: Any, arrays: Sequence[Any]) -> Any:
    """Call a function from a program that JAX compiles.

    Args:
        number: Its number.
        result: Shape and type of the result, `jax.ShapeDtypeStruct`.
        arrays: The arguments.
    """
    import jax

    return jax.ffi.ffi_call(TARGET, result)(*arrays, number=np.int64(number))


@cache
def _register() -> None:
    import jax

    for handler, platform in ((_ON_CPU, "cpu"), (_ON_GPU, "CUDA")):
        jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(handler), platform=platform)


@cache
def _version() -> list[int]:
    """Version of the interface, for a jaxlib that lacks it; all have the structures above."""
    import jax

    text = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text("utf-8")
    return [int(n) for n in re.findall(r"#define XLA_FFI_API_(?:MAJOR|MINOR) (\d+)", text)]


def _answer(address: Any, call: Callable[[_Frame, Foreign], None]) -> int | None:
    """Execute a request of XLA; returns the address of an error, or none."""
    frame = address.contents
    if frame.extension and frame.extension.contents.kind == METADATA:
        version = frame.extension.contents.metadata.contents.version
        known = frame.api.contents.version if frame.api else None
        version.major, version.minor = (known.major, known.minor) if known else _version()
        return None
    if frame.stage != EXECUTE:
        return None
    try:
        call(frame, _FUNCTIONS[frame.attributes.items[0].contents.value[0]])
    except BaseException as error:  # which ctypes would print, to go on
        return _error(frame, f"{type(error).__name__}: {error}")
    return None


def _error(frame: _Frame, text: str) -> int | None:
    create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_ErrorArguments))(
        frame.api.contents.create_error
    )
    given = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, text.encode(), INTERNAL)
    made: int | None = create(given)
    return made


def _on_cpu(frame: _Frame, function: Foreign) -> None:
    def view(buffer: _Buffer) -> Any:
        shape, dtype = buffer.layout()
        if not math.prod(shape):
            return np.empty(shape, dtype)
        size = math.prod(shape) * dtype.itemsize
        memory: Any = (ctypes.c_char * size).from_address(buffer.data)
        return np.ndarray(shape, dtype, memory)

    (result,) = map(view, frame.results.each())
    function([view(buffer) for buffer in frame.arguments.each()], result, None)


def _on_gpu(frame: _Frame, function: Foreign) -> None:
    from axode.runtime.device import cupy

    cp = cupy()

    def view(buffer: _Buffer) -> Any:
        shape, dtype = buffer.layout()
        if not math.prod(shape):
            return cp.empty(shape, dtype)
        memory = cp.cuda.UnownedMemory(buffer.data, math.prod(shape) * dtype.itemsize, None)
        return cp.ndarray(shape, dtype, cp.cuda.MemoryPointer(memory, 0))

    get = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_StreamArguments))(
        frame.api.contents.get_stream
    )
    asked = _StreamArguments(ctypes.sizeof(_StreamArguments), None, frame.context, None)
    get(asked)
    (result,) = map(view, frame.results.each())
    arguments = [view(buffer) for buffer in frame.arguments.each()]
    with cp.cuda.Device(result.device.id):
        function(arguments, result, asked.stream or 0)


_ON_CPU = _HANDLER(lambda address: _answer(address, _on_cpu))
_ON_GPU = _HANDLER(lambda address: _answer(address, _on_gpu))


def import_jax() -> Any:
    """Import JAX.

    Raises:
        NotApplicable: if it is not installed.
    """
    try:
        import jax
    except ImportError:
        raise NotApplicable(f"arrays of JAX need the package: {install_command('jax')}") from None
    return jax


def real_array(value: Any) -> Any:
    """Array of JAX of real numbers.

    Raises:
        TypeError: for complex numbers, keys, texts and numbers of less than a byte or 8-bit floats.
    """
    jnp = import_jax().numpy
    array = jnp.asarray(value)
    real = jnp.isdtype(array.dtype, ("numeric", "bool")) and not jnp.iscomplexobj(array)
    narrow = array.dtype.kind == "V" and array.dtype != jnp.bfloat16  # nothing promotes them
    if narrow or not real:
        raise TypeError
    return array


class JaxFunction:
    """A function of a model on arrays of JAX.

    Call it with the function's arguments: arrays with any leading batch axes, values by name, or
    None for the default; `t` and `parameters` are keywords. It works under `jit`, `vmap`, `grad`,
    `jvp`, `jacfwd`, `jacrev` and `hessian`. Compiled programs of JAX call the model's functions on
    their own memory; on a GPU that needs a model that is compiled for "cuda".
    """

    def __init__(self, source: ArrayFunction) -> None:
        import_jax()
        self.source = source

    def __repr__(self) -> str:
        return f"JaxFunction {self.source!r}"

    def __call__(self, *arguments: Any, t: Any = None, parameters: Any = None, **named: Any) -> Any:
        """Evaluate the function.

        Args:
            arguments: Those of the function, in its own order; the last ones may be left out.
            t: Time, where it is explicit.
            parameters: Free parameters, in order or by name.
            named: Arguments by name.
        """
        jnp, source = import_jax().numpy, self.source

        def stack(values: list[Any]) -> Any:
            return jnp.stack(jnp.broadcast_arrays(*values), axis=-1)

        given = source.ordered(arguments, named, t, parameters)
        arrays = [
            source.vector(name, value, real_array, stack)
            for name, value in zip(source.arguments, given, strict=True)
        ]
        try:
            np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
        except ValueError:
            pairs = zip(source.arguments, arrays, strict=True)
            listed = ", ".join(f"'{name}' {array.shape[:-1]}" for name, array in pairs)
            message = f"{source.name}: the batch axes do not fit together: {listed}"
            raise InvalidArgument(message) from None
        dtype = jnp.result_type(0.0, *arrays)
        result = _bind(source, "value", (), [array.astype(dtype) for array in arrays])
        if source.name == "contact_forces":
            for wheel, component in facts_of(source.model).unknown_forces:
                result = result.at[..., wheel, component].set(np.nan)
        return result


def _bind(source: ArrayFunction, kind: str, names: tuple[Names, ...], arrays: Any) -> Any:
    """A value or a product with derivatives; see `ArrayFunction.call`."""
    return _primitive().bind(*arrays, source=source, kind=kind, names=names)


@cache
def _primitive() -> Any:
    """An operation of JAX with all rules but the computation itself."""
    import_jax()
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    made = Primitive("axode")
    made.def_impl(_impl)
    made.def_abstract_eval(_abstract)
    ways = {"cpu": _call, "cuda": _call_on_gpu, None: _call_back}
    for platform, way in ways.items():
        lowered = mlir.lower_fun(way, multiple_results=False)
        mlir.register_lowering(made, lowered, platform=platform)
    batching.primitive_batchers[made] = _batch
    ad.primitive_jvps[made] = _jvp
    ad.primitive_transposes[made] = _transpose
    return made


def _impl(*arrays: Any, **which: Any) -> Any:
    return _compiled(**which)(*arrays)


@cache
def _compiled(**which: Any) -> Any:
    """A call outside compiled programs: a program of its own."""
    return import_jax().jit(lambda *arrays: _primitive().bind(*arrays, **which))


@cache
def _number(source: ArrayFunction, kind: str, names: tuple[Names, ...]) -> int:
    """Number by which compiled programs know a function."""

    def evaluate(arrays: Sequence[Any], result: Any, stream: int | None) -> None:
        if stream is not None:
            source.call(kind, names, arrays, out=result, stream=stream)
            return
        doubles = [array.astype(float, copy=False) for array in arrays]
        out = result if result.dtype == float else np.empty(result.shape)
        source.call(kind, names, doubles, out=out)
        if out is not result:
            result[...] = out

    return number_of(evaluate)


def _abstract(*arrays: Any, source: ArrayFunction, kind: str, names: tuple[Names, ...]) -> Any:
    batch = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
    shape = (*batch, *source.result_shape(kind, names))
    return import_jax().core.ShapedArray(shape, arrays[0].dtype)


def _call(*arrays: Any, **which: Any) -> Any:
    """Let a compiled program call the model's function where its arrays are."""
    return foreign_call(_number(**which), _shape(arrays, which), arrays)


def _call_on_gpu(*arrays: Any, **which: Any) -> Any:
    on_gpu = which["source"].model.target == "cuda"
    return (_call if on_gpu else _call_back)(*arrays, **which)


def _call_back(*arrays: Any, source: ArrayFunction, kind: str, names: tuple[Names, ...]) -> Any:
    """Let a compiled program call the model's function on arrays that come to the CPU."""

    def evaluate(*given: Any) -> Any:
        here = [np.asarray(x) for x in given]
        found = source.call(kind, names, [x.astype(float, copy=False) for x in here])
        return np.asarray(found, dtype=here[0].dtype)

    shape = _shape(arrays, {"source": source, "kind": kind, "names": names})
    return import_jax().pure_callback(evaluate, shape, *arrays)


def _shape(arrays: Any, which: dict[str, Any]) -> Any:
    made = _abstract(*arrays, **which)
    return import_jax().ShapeDtypeStruct(made.shape, made.dtype)


def _batch(arrays: Any, axes: Any, **which: Any) -> Any:
    """Put the axis of `vmap` in front of all others, of length one where it is missing."""
    jnp = import_jax().numpy
    own = [array.ndim - (axis is not None) for array, axis in zip(arrays, axes, strict=True)]
    made = []
    for array, axis, count in zip(arrays, axes, own, strict=True):
        front = array[None] if axis is None else jnp.moveaxis(array, axis, 0)
        ones = (1,) * (max(own) - count)
        made.append(front.reshape(front.shape[0], *ones, *front.shape[1:]))
    return _primitive().bind(*made, **which), 0


def _jvp(primals: Any, tangents: Any, *, source: ArrayFunction, kind: str, names: Any) -> Any:
    """Change of the result: linear in changes of weights and directions, and by derivatives."""
    from jax.interpreters import ad

    count = len(source.arguments)
    moves = [None if type(x) is ad.Zero else x for x in tangents]
    along = tuple(n for n, m in zip(source.arguments, moves, strict=False) if m is not None)
    given = [m for m in moves[:count] if m is not None]
    parts = []
    if along:
        higher = {"value": "jvp", "jvp": "jvp_jvp", "vjp": "hvp"}
        if kind not in higher:
            raise NotApplicable(
                f"{source.name} has no third derivatives in JAX; the first two are there"
            )
        parts.append(_bind(source, higher[kind], (*names, along), [*primals, *given]))
    jnp = import_jax().numpy
    for group in _linear(source, kind, names):
        changed = [moves[k] for k in group]
        if any(x is not None for x in changed):
            arrays = list(primals)
            for k, x in zip(group, changed, strict=True):
                arrays[k] = jnp.zeros_like(primals[k]) if x is None else x
            parts.append(_bind(source, kind, names, arrays))
    out = _bind(source, kind, names, primals)
    return out, sum(parts[1:], parts[0])


def _linear(source: ArrayFunction, kind: str, names: tuple[Names, ...]) -> list[range]:
    """Places of operands in each of which, taken together, a product is linear."""
    first, found = len(source.arguments), []
    if kind in ("vjp", "hvp"):
        found.append(range(first, first + 1))
        first += 1
    directions = names[1:] if kind in ("vjp", "hvp") else names
    for group in directions:
        found.append(range(first, first + len(group)))
        first += len(group)
    return found


def _transpose(weights: Any, *operands: Any, source: Any, kind: str, names: Any) -> Any:
    """Pull back through a product that is linear in some of its operands."""
    from jax.interpreters import ad

    found: list[Any] = [None] * len(operands)
    if type(weights) is ad.Zero:
        return found
    unknown = [k for k, x in enumerate(operands) if ad.is_undefined_primal(x)]
    group = next(group for group in _linear(source, kind, names) if unknown[0] in group)
    parts = _pull_back(weights, operands, group, source, kind, names)
    for k in unknown:
        found[k] = _summed(parts[group.index(k)], operands[k].aval.shape)
    return found


def _pull_back(
    weights: Any, operands: Any, group: range, source: ArrayFunction, kind: str, names: Any
) -> list[Any]:
    """Cotangents of a group of operands in which a product is linear."""
    count = len(source.arguments)
    arguments = operands[:count]
    match kind:
        case "jvp":
            given = [*arguments, source.flat(weights)]
            return _split(source, _bind(source, "vjp", names, given), names[0])
        case "vjp":
            back = _split(source, weights, names[0])
            return [source.flat(_bind(source, "jvp", names, [*arguments, *back]))]
        case "jvp_jvp":
            first = group.start == count
            (of, along), kept = (names, 1) if first else (names[::-1], 0)
            known = _linear(source, kind, names)[kept]
            given = [*arguments, source.flat(weights), *(operands[k] for k in known)]
            return _split(source, _bind(source, "hvp", (of, along), given), of)
    of, along = names
    back = _split(source, weights, of)
    if group.start == count:  # weights
        given = [*arguments, *operands[count + 1 :], *back]
        return [source.flat(_bind(source, "jvp_jvp", (along, of), given))]
    given = [*arguments, operands[count], *back]
    return _split(source, _bind(source, "hvp", (along, of), given), along)


def _split(source: ArrayFunction, packed: Any, of: Names) -> list[Any]:
    ends = np.cumsum(source.widths(of))[:-1]
    return [*import_jax().numpy.split(packed, ends, axis=-1)]


def _summed(part: Any, shape: tuple[int, ...]) -> Any:
    """Sum over the samples that share an argument."""
    missing = part.ndim - len(shape)
    shared = tuple(
        axis
        for axis in range(part.ndim)
        if axis < missing or (shape[axis - missing] == 1 and part.shape[axis] != 1)
    )
    return part.sum(axis=shared).reshape(shape)
