"""What a host is to the controller, wherever it is."""

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

# Once the user interrupts, what does not answer for this long (s) is lost.
HURRIED_S = 5.0
# A host that hears nothing from its controller for this long (s) ends what it keeps: nobody would see what it does, or end it.
ABANDONED_S = 30.0

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Host(Protocol):
    """A machine, or what stands for one. Functions and classes that it is given are of this package, which it has in the same version.

    Both calls raise LostHostError where it is gone or answers no more, and what the function itself raises.
    """

    @property
    def name(self) -> str:
        """Its name, as the user gave it."""

    @property
    def address(self) -> str:
        """Where servers on it listen."""

    def call(self, function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """What a function returns there. It is called once, and never again if the host is lost on the way."""

    def keep(self, kind: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Makes an object there, and returns what stands for it here: its methods are called there, one after the other. Its `close` and
        `give_up` alone are called at once, also during another one.

        Where nobody here has been heard of for ABANDONED_S, the host calls the object's `close`, if it has one, and nothing else any more.
        """
