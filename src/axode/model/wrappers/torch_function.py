"""Functions of models on tensors of PyTorch, which differentiates through them twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from axode.errors import InvalidArgument, NotApplicable, install_command
from axode.model.model_parts import facts_of, library_of
from axode.model.wrappers.array_function import ArrayFunction, Names


def import_torch() -> Any:
    """Import PyTorch.

    Raises:
        NotApplicable: if it is not installed.
    """
    try:
        import torch
    except ImportError:
        raise NotApplicable(f"tensors need PyTorch: {install_command('torch')}") from None
    return torch


class TorchFunction:
    """A function of a model on tensors.

    Call it with the function's arguments: tensors with any leading batch axes, values by name, or
    None for the default; `t` and `parameters` are keywords. The result is a tensor that `backward`,
    `torch.func.grad`, `jacrev`, `jvp`, `vmap` and `hessian` support. Tensors on the CPU share
    their memory with the model's functions. Those on a GPU need a model that is compiled for
    "cuda"; its kernels run on PyTorch's current stream.
    """

    def __init__(self, source: ArrayFunction) -> None:
        import_torch()
        self.source = source

    def __repr__(self) -> str:
        return f"TorchFunction {self.source!r}"

    def __call__(self, *arguments: Any, t: Any = None, parameters: Any = None, **named: Any) -> Any:
        """Evaluate the function.

        Args:
            arguments: Those of the function, in its own order; the last ones may be left out.
            t: Time, where it is explicit.
            parameters: Free parameters, in order or by name.
            named: Arguments by name.
        """
        return call_untraced(self._evaluate, arguments, named | {"t": t, "parameters": parameters})

    def _evaluate(self, *arguments: Any, t: Any, parameters: Any, **named: Any) -> Any:
        torch, source = import_torch(), self.source
        given = source.ordered(arguments, named, t, parameters)
        like = common_type(torch, given)

        def convert(value: Any) -> Any:
            return dense_tensor(torch, value, like)

        def stack(values: list[Any]) -> Any:
            return torch.stack(torch.broadcast_tensors(*values), dim=-1)

        tensors = [
            source.vector(name, value, convert, stack)
            for name, value in zip(source.arguments, given, strict=True)
        ]
        result = _product().apply(source, "value", (), *tensors)
        return _without_unknown(torch, source, result)


def call_untraced(function: Any, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
    """Call a function that `torch.compile` leaves as it is.

    It replaces NumPy's functions by its own, and misses what compiled code writes to arrays.
    """
    torch = import_torch()
    if torch.compiler.is_compiling():
        function = torch.compiler.disable(function)
    return function(*arguments, **named)


def dense_tensor(torch: Any, value: Any, like: dict[str, Any]) -> Any:
    """Tensor of real numbers, of a type and on a device.

    Raises:
        TypeError: for complex numbers, whose imaginary parts would be lost, and for tensors that
            are sparse, nested, quantized or without numbers of their own, such as masked ones.
    """
    if isinstance(value, torch.Tensor):
        plain = value.layout == torch.strided and not (value.is_nested or value.is_quantized)
        own = type(value).__torch_dispatch__ is torch.Tensor.__torch_dispatch__
        if not (plain and own) or value.is_complex():
            raise TypeError
    elif np.iscomplexobj(value):
        raise TypeError
    elif isinstance(value, np.ndarray):  # in the order of this machine's bytes, without gaps
        value = np.array(value, dtype=value.dtype.newbyteorder("="))
    return torch.as_tensor(value, **like).resolve_neg()


def common_type(torch: Any, given: Sequence[Any]) -> dict[str, Any]:
    """Type and device of all tensors among what was given.

    Raises:
        InvalidArgument: for tensors in different places, or of types without a common one.
    """
    parts = (value.values() if isinstance(value, Mapping) else [value] for value in given)
    found = [x for part in parts for x in part if isinstance(x, torch.Tensor)]
    floating = [x.dtype for x in found if x.dtype.is_floating_point]
    dtype = floating[0] if floating else torch.float64
    for other in floating[1:]:
        try:
            dtype = torch.promote_types(dtype, other)
        except RuntimeError:
            raise InvalidArgument(f"the tensors are of {dtype} and {other}; convert one") from None
    devices = {x.device for x in found}
    if len(devices) > 1:
        listed = " and ".join(sorted(map(str, devices)))
        raise InvalidArgument(f"the tensors are on {listed}; move them to one device")
    if not {x.type for x in devices} <= {"cpu", "cuda"}:
        raise InvalidArgument(f"the tensors are on {devices.pop()}; move them to the CPU or a GPU")
    return {"dtype": dtype, "device": devices.pop() if devices else "cpu"}


def _without_unknown(torch: Any, source: ArrayFunction, result: Any) -> Any:
    """Set forces that statics does not determine to NaN."""
    unknown = facts_of(source.model).unknown_forces if source.name == "contact_forces" else ()
    if not unknown:
        return result
    known = torch.ones(source.shape, dtype=torch.bool, device=result.device)
    for wheel, component in unknown:
        known[wheel, component] = False
    return torch.where(known, result, torch.nan)


@cache
def _product() -> Any:
    """`torch.autograd.Function` of values and of products with derivatives.

    Its arguments are those of `ArrayFunction.call`: a function, the kind, names, and then tensors.
    """
    torch = import_torch()
    methods: dict[str, Any] = {
        "forward": _forward,
        "setup_context": _setup_context,
        "backward": _backward,
        "jvp": _jvp,
        "vmap": _vmap,
    }
    members: dict[str, Any] = {name: staticmethod(methods[name]) for name in methods}
    return type("Product", (torch.autograd.Function,), members)


def _forward(source: ArrayFunction, kind: str, names: tuple[Names, ...], *tensors: Any) -> Any:
    torch = import_torch()
    like = tensors[0]
    if not like.is_cuda:
        arrays = [x.detach().resolve_neg().double().numpy() for x in tensors]
        found = source.call(kind, names, arrays)
        return torch.from_numpy(np.asarray(found)).to(like.dtype)
    if source.model.target != "cuda":
        raise InvalidArgument(
            f"the tensors are on {like.device}, the model is for the CPU; use compile('cuda')"
        )
    batch = torch.broadcast_shapes(*(x.shape[:-1] for x in tensors))
    shape = (*batch, *source.result_shape(kind, names))
    precision = getattr(torch, library_of(source.model).precision)
    out = torch.empty(shape, dtype=precision, device=like.device)
    source.call(kind, names, [x.detach() for x in tensors], out=out)
    return out.to(like.dtype)


def _setup_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.source, ctx.kind, ctx.names, *tensors = inputs
    ctx.save_for_backward(*tensors)
    ctx.save_for_forward(*tensors)


def _backward(ctx: Any, weights: Any) -> Any:
    source, kind, tensors = ctx.source, ctx.kind, ctx.saved_tensors
    count, wanted = len(source.arguments), ctx.needs_input_grad[3:]
    by = tuple(name for name, w in zip(source.arguments, wanted, strict=False) if w)
    arguments, others = tensors[:count], tensors[count:]
    weights = weights.to_dense()
    parts: list[Any] = []
    match kind:
        case "value":
            parts = _split(source, "vjp", (by,), [*arguments, source.flat(weights)], by)
        case "jvp":
            (along,) = ctx.names
            flat = source.flat(weights)
            if by:
                given = [*arguments, flat, *others]
                parts = _split(source, "hvp", (by, along), given, by)
            if any(wanted[count:]):
                parts += _split(source, "vjp", (along,), [*arguments, flat], along)
        case "vjp":
            (of,) = ctx.names
            given = [*tensors, *weights.split(source.widths(of), dim=-1)]
            change, *parts = _split(source, "second", (by, of), given, by)
            parts.append(change)
        case _:
            raise _no_third(source)
    places = [k for k in range(count) if wanted[k]]
    places += range(count, len(tensors)) if len(parts) > len(places) else []
    found: list[Any] = [None] * len(tensors)
    for k, part in zip(places, parts, strict=True):
        found[k] = part.sum_to_size(tensors[k].shape)
    return None, None, None, *found


def _jvp(ctx: Any, _: Any, __: Any, ___: Any, *moves: Any) -> Any:
    source, kind, tensors = ctx.source, ctx.kind, ctx.saved_tensors
    count, product = len(source.arguments), _product().apply
    if any(move is not None and move.is_complex() for move in moves):
        raise InvalidArgument(
            f"{source.name}: a complex direction; give its real and its imaginary part in turn"
        )
    pairs = [(n, m) for n, m in zip(source.arguments, moves, strict=False) if m is not None]
    along, given = tuple(name for name, _ in pairs), [move for _, move in pairs]
    parts = []
    if along:
        higher = {"value": "jvp", "jvp": "jvp_jvp", "vjp": "hvp"}
        if kind not in higher:
            raise _no_third(source)
        parts.append(product(source, higher[kind], (*ctx.names, along), *tensors, *given))
    if any(move is not None for move in moves[count:]):  # a product is linear in what follows
        if kind not in ("jvp", "vjp"):
            raise _no_third(source)
        others = [
            x.new_zeros(x.shape) if move is None else move
            for x, move in zip(tensors[count:], moves[count:], strict=True)
        ]
        parts.append(product(source, kind, ctx.names, *tensors[:count], *others))
    return sum(parts[1:], parts[0])


def _no_third(source: ArrayFunction) -> NotApplicable:
    return NotApplicable(
        f"{source.name} has no third derivatives in PyTorch; the first two are there"
    )


def _vmap(
    info: Any, dims: Any, source: ArrayFunction, kind: str, names: tuple[Names, ...], *tensors: Any
) -> Any:
    """Put the axis of `vmap` in front of all others, of length one where it is missing."""
    axes = [x.ndim - (dim is not None) for x, dim in zip(tensors, dims[3:], strict=True)]
    made = []
    for x, dim, own in zip(tensors, dims[3:], axes, strict=True):
        x = x.unsqueeze(0) if dim is None else x.movedim(dim, 0)
        made.append(x.reshape(x.shape[0], *[1] * (max(axes) - own), *x.shape[1:]))
    return _product().apply(source, kind, names, *made), 0


def _split(
    source: ArrayFunction, kind: str, names: tuple[Names, ...], tensors: list[Any], by: Names
) -> list[Any]:
    """Parts of a product: the change of the result if there is one, and gradients."""
    widths = [*([source.size] if kind == "second" else []), *source.widths(by)]
    packed = _product().apply(source, kind, names, *tensors)
    return [*packed.split(widths, dim=-1)]
