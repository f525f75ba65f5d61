"""The names of what is in the run folder and in the output folders of a run."""

from __future__ import annotations

from dagflow.storage import OWN_FOLDER

STAGING = f"{OWN_FOLDER}/staging"
