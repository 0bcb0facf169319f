"""Long work that a person may end with Ctrl-C at any time, and what there is by then is kept."""

from __future__ import annotations

import contextvars
import gc
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

WORKER = "search-o1-optimizer"
"""Name of the thread that the work runs in."""

_LOOK = 0.2
_GIVEN_UP = 3
"""Ctrl-C pressed so often ends the tidying up as well."""


class Interrupts:
    """Takes Ctrl-C as a wish to stop: the first one asks the work to end, a second one changes nothing.

    Use it as a context manager around the work and what is done with its result. Away from the main thread, where no
    signal arrives, it only runs the work.

    Args:
        stop: Makes the work end soon; called once.
        patience: Seconds that the work is given to end; it is left behind in its thread after that.

    Attributes:
        pressed: How often Ctrl-C was pressed.
    """

    def __init__(self, stop: Callable[[], None], patience: float = 1.5) -> None:
        self.stop = stop
        self.patience = patience
        self.pressed = 0
        self._before: Any = None
        self._wanted = threading.Event()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def run(self, work: Callable[[], None]) -> bool:
        """Run work in a thread of its own, with this thread's context variables.

        Args:
            work: The work; what it raises is raised here, unless it was asked to stop.

        Returns:
            Whether it came to its own end; False if Ctrl-C was pressed before.
        """
        raised: list[BaseException] = []
        done = threading.Event()

        def call() -> None:
            try:
                work()
            except BaseException as error:
                if not self._wanted.is_set():
                    raised.append(error)
            finally:
                if self._wanted.is_set():
                    # Progress bars that were left in the middle print when they are let go of: here, not anywhere.
                    gc.collect()
                done.set()

        context = contextvars.copy_context()
        # A daemon, so that a call nobody can cancel does not keep the process.
        threading.Thread(target=context.run, args=(call,), name=WORKER, daemon=True).start()
        while not done.is_set() and not self._wanted.is_set():
            done.wait(_LOOK)
        if not done.is_set():
            self.stop()
            done.wait(self.patience)
            return False
        if raised:
            raise raised[0]
        return True

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.pressed += 1
        self._wanted.set()
        if self.pressed >= _GIVEN_UP:
            raise KeyboardInterrupt
