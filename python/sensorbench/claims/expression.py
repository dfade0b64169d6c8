"""Expressions over measured figures, as claims state them: `latency(sql, get_range) / latency(nosql, get_range)`.

A figure is a quantity with arguments in brackets, which are separated by commas and may hold blanks. Figures are combined by `+`, `-`, `*`,
`/`, `**` with a number, brackets and numbers. What a quantity means is known to the evidence that is asked for it, not here.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_FIGURE = re.compile(r"([a-z_][a-z0-9_]*)\(([^()]*)\)")


class Figure(NamedTuple):
    """A quantity of something: `size_bytes` of the role `nosql`."""

    quantity: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        """The figure as claims write it."""
        return f"{self.quantity}({', '.join(self.arguments)})"


@dataclass(frozen=True)
class Expression:
    """A formula over figures, in which each figure stands once."""

    text: str
    figures: tuple[Figure, ...]
    tree: ast.expr

    @classmethod
    @cache
    def parse(cls, text: str) -> "Expression":
        """The expression of a text.

        Raises:
            ValueError: if it is not a formula over figures; the message says what was found.

        """
        figures: list[Figure] = []

        def placeholder(match: re.Match[str]) -> str:
            figure = Figure(match[1], tuple(argument.strip() for argument in match[2].split(",")))
            if figure not in figures:
                figures.append(figure)
            return f"f{figures.index(figure)}"

        formula = _FIGURE.sub(placeholder, text)
        try:
            tree = ast.parse(formula.strip(), mode="eval").body
        except SyntaxError as error:
            raise ValueError(f"{text!r} is not a formula over figures such as 'latency(sql, get_range)'") from error
        _check(tree, len(figures), text)
        if not figures:
            raise ValueError(f"{text!r} names no figure such as 'latency(sql, get_range)'")
        return cls(text, tuple(figures), tree)

    @cached_property
    def weights(self) -> tuple[float, ...] | None:
        """The exponent of each figure where the expression is a product of powers; None if it is not."""
        found = _exponents(self.tree, len(self.figures))
        return None if found is None else tuple(found)

    @cached_property
    def coefficients(self) -> tuple[float, ...] | None:
        """The factor of each figure where the expression is a sum of figures times numbers; None if it is not."""
        zeros = np.zeros((1, len(self.figures)))
        points = np.vstack([zeros, np.eye(len(self.figures)), np.ones((1, len(self.figures)))])
        with np.errstate(all="ignore"):
            values = np.array([self.evaluate(point) for point in points])
        slopes = values[1:-1] - values[0]
        is_linear = np.isfinite(values).all() and _is_sum(self.tree) and abs(values[0]) < 1e-12
        return tuple(float(slope) for slope in slopes) if is_linear else None

    @cached_property
    def factor(self) -> float:
        """The constant in front of a product of powers."""
        return float(self.evaluate([1.0] * len(self.figures)))

    def evaluate(self, values: Sequence[Floats | float] | Floats) -> Floats | float:
        """The value of the expression, for a value of each of its figures, or for arrays of equal shape."""
        return _value(self.tree, values)

    def __str__(self) -> str:
        """The text."""
        return self.text


def _number_of(name: str) -> int:
    return int(name[1:])


def _check(node: ast.expr, figures: int, text: str) -> None:
    """Raises ValueError for anything but figures, numbers and the five operators."""
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=right):
            _check(left, figures, text)
            _check(right, figures, text)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() | float())):
            _check(left, figures, text)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _check(operand, figures, text)
        case ast.Constant(value=int() | float()):
            pass
        case ast.Name(id=name) if re.fullmatch(r"f\d+", name) and _number_of(name) < figures:
            pass
        case _:
            raise ValueError(
                f"{text!r}: {ast.unparse(node)!r} is neither a figure nor a number; figures are written 'quantity(argument, …)'"
            )


def _value(node: ast.expr, values: Sequence[Floats | float] | Floats) -> Floats | float:
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            first, second = _value(left, values), _value(right, values)
            match op:
                case ast.Add():
                    return first + second
                case ast.Sub():
                    return first - second
                case ast.Mult():
                    return first * second
                case ast.Div():
                    return np.divide(first, second)
                case _:
                    return np.power(first, second)
        case ast.UnaryOp(operand=operand):
            return -_value(operand, values)
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name):
            return values[_number_of(name)]
    raise AssertionError(f"an expression holds what its check refuses: {ast.unparse(node)}")


def _exponents(node: ast.expr, figures: int) -> list[float] | None:
    """The exponents of a product of powers: of each figure."""
    match node:
        case ast.Name(id=name):
            return [1.0 if number == _number_of(name) else 0.0 for number in range(figures)]
        case ast.Constant(value=int() | float() as number) if number > 0:
            return [0.0] * figures
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
            first, second = _exponents(left, figures), _exponents(right, figures)
            if first is None or second is None:
                return None
            sign = 1.0 if isinstance(op, ast.Mult) else -1.0
            return [a + sign * b for a, b in zip(first, second, strict=True)]
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() | float() as power)):
            base = _exponents(left, figures)
            return None if base is None else [power * exponent for exponent in base]
    return None


def _is_sum(node: ast.expr) -> bool:
    """Whether no figure is multiplied with or divided by another one."""
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _is_sum(left) and _is_sum(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return (_is_constant(left) and _is_sum(right)) or (_is_sum(left) and _is_constant(right))
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _is_sum(left) and _is_constant(right)
        case ast.UnaryOp(operand=operand):
            return _is_sum(operand)
        case ast.Name() | ast.Constant():
            return True
    return False


def _is_constant(node: ast.expr) -> bool:
    return not any(isinstance(child, ast.Name) for child in ast.walk(node))
