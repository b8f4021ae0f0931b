"""The settings of `publish submission`. Python and the command line share one table."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from barista_bench.core.settings import SettingsTable
from barista_bench.errors import ConfigError
from barista_bench.hub import checks


class SubmissionTarget(SettingsTable):
    """The target of results, and their description."""

    model_repo: checks.RepoId = Field(description="Repository of the model on the Hub: org/model.")
    dataset_repo: checks.RepoId = Field(description="Repository of the benchmark's dataset on the Hub.")
    dataset_revision: checks.Commit | None = Field(None, description="Commit of --dataset-repo, 40 digits.")
    model_name: str | None = Field(None, description="Name of the model in the runs, if it differs.")
    date: checks.Date | None = Field(None, description="Date of the evaluation, ISO 8601.")
    source_url: checks.Address | None = Field(None, description="https address where readers can inspect the results.")
    source_name: checks.Text | None = Field(None, description="Name of the source.")
    source_user: checks.Text | None = Field(None, description="User on the Hub who is the source.")
    source_org: checks.Text | None = Field(None, description="Organisation on the Hub that is the source.")

    @property
    def source(self) -> checks.EvalSource | None:
        if self.source_url is None:
            if self.source_name or self.source_user or self.source_org:
                raise ConfigError("a source needs an address. Fix: give --source-url too")
            return None
        return checks.EvalSource(url=self.source_url, name=self.source_name, user=self.source_user, org=self.source_org)


class UploadSettings(SettingsTable):
    """Settings that tell whether and where files are uploaded."""

    push: bool = Field(False, description="Upload the files. Without it nothing leaves this machine.")
    pull_request: bool = Field(False, description="Upload to pull requests; the default.")
    branch: str | None = Field(None, description="Upload to this branch, or to an open pull request: refs/pr/7.")
    to_main: bool = Field(False, description="Upload to main.")
    results_repo: str | None = Field(None, description="Dataset repository that a leaderboard Space reads.")
    token_env: str | None = Field(None, description="Environment variable with the token, if not HF_TOKEN.")

    def refuse_contradictions(self) -> None:
        """Raise ConfigError for upload options without an upload, or for several targets."""
        if not self.push and (self.pull_request or self.branch or self.to_main):
            raise ConfigError("upload options need --push. Fix: add it, or leave the options out")
        if self.pull_request and (self.branch or self.to_main):
            raise ConfigError("more than one upload target. Fix: give one of --pull-request, --branch, --to-main")


class SubmissionSettings(UploadSettings, SubmissionTarget):
    """Settings of a submission. The descriptions are the help texts of the command line."""

    runs: tuple[Path, ...] = Field(description="Run folders of one model, one per task.")
    out: Path = Field(Path("submission"), description="Folder for the files; must hold nothing else.")
    model_folder: Path | None = Field(
        None, description="Local copy of the model repository; new results are merged into its card and results."
    )
    dataset: str | None = Field(
        None, description="Dataset with the trusted references and images: a built folder, or a Hub dataset."
    )
    adapter: str | None = Field(None, description="Adapter that the runs must have used: a folder, or a Hub id.")
    data: str | None = Field(None, description="Current location of the runs' dataset, if it has moved.")
    root: Path | None = Field(None, description="Folder with the videos of a linked dataset, if they have moved.")
    judge: str | None = Field(None, description="Judge whose scores to submit, if a run has several.")
    allow_incomplete: bool = Field(False, description="Accept unfinished runs; they are marked.")

    def refuse_contradictions(self) -> None:
        """Raise ConfigError for settings that exclude each other."""
        super().refuse_contradictions()
        if self.push and self.model_folder:
            raise ConfigError(
                "--push merges with the repository on the Hub, not with --model-folder. Fix: leave out one"
            )
