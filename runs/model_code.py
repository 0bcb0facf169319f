"""What MLflow runs when it loads a registered program: a model from code, with the program's JSON as its artifact.

MLflow keeps a copy of this file beside the JSON and runs that copy. So it holds only what MLflow asks for; how
questions are answered is the installed package's business.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlflow
import pandas as pd  # type: ignore[import-untyped]

from runs.loaded_program import LoadedProgram, rows_of


class ProgramModel(mlflow.pyfunc.PythonModel):  # type: ignore[misc]
    """A compiled program behind MLflow's `predict`."""

    def load_context(self, context: Any) -> None:
        """Read the program.

        Args:
            context: MLflow's; its artifact `program` is the compiled program's JSON file.

        Raises:
            ProgramError: The file is bad.
        """
        self._program = LoadedProgram(Path(context.artifacts["program"]))

    def predict(self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None) -> pd.DataFrame:
        """Answer questions.

        Args:
            context: MLflow's.
            model_input: A table with a column `question`, and for code `question_title` and `starter_code`; or a list
                of questions.
            params: Settings by name, see `runs.loaded_program.SETTINGS`.

        Returns:
            A table with `answer`, `reasoning`, `searches`, `finish` and `error`, a row a question.

        Raises:
            SearchO1Error: A setting is wrong, or model, corpus or server are missing.
        """
        answers = self._program.answer(rows_of(model_input), params)
        return pd.DataFrame(answers, columns=["answer", "reasoning", "searches", "finish", "error"])


mlflow.models.set_model(ProgramModel())
