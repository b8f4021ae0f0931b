"""The home page opens reports in the studio's folder, and they reach nothing else of the studio."""

from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect

from barista_bench.api import evaluate, load_results
from barista_bench.reporting import write_report
from barista_bench.studio.workspace import open_workspace
from tests.reporting.browser import SHOWN, Watched
from tests.studio.serving import Visitor, studio_at, visiting
from tests.studio.test_accessibility import serious_faults

ATTACK = """<!doctype html><title>attack</title><pre id="said"></pre>
<iframe src="/api/jobs"></iframe><img src="/static/any/icon.svg" onload="said.append('picture ')">
<form method="post" action="/api/jobs/start"><input name="step" value="mini"></form>
<script>
const job = JSON.stringify({step: "mini", values: {out: "made"}});
const tries = {
  read: () => fetch("/api/jobs", {credentials: "include"}).then(answer => answer.text()),
  blind: () => fetch("/api/jobs/start", {method: "POST", mode: "no-cors", credentials: "include", body: job}),
  xhr: () => new Promise((done, fail) => {
    const asked = new XMLHttpRequest();
    Object.assign(asked, {withCredentials: true, onload: done, onerror: () => fail(new Error("xhr"))});
    asked.open("GET", "/api/jobs");
    asked.send();
  }),
  beacon: async () => { navigator.sendBeacon("/api/jobs/start", job); throw new Error("queued"); },
  cookie: async () => document.cookie,
  storage: async () => localStorage.length,
  opener: async () => opener.document.title,
  window: async () => open("/").document.title,
  form: async () => { document.forms[0].submit(); throw new Error("nothing came of it"); },
};
(async () => {
  for (const [name, attempt] of Object.entries(tries)) {
    await attempt().then(() => said.append(name + " "), () => {});
  }
  document.body.dataset.tried = Object.keys(tries).length;
})();
</script>"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The studio's folder with a report in it, and what lies beside both."""
    folder = tmp_path / "work"
    (folder / "runs" / "a ü#").mkdir(parents=True)
    (folder / "runs" / "a ü#" / "report.html").write_text(ATTACK)
    (folder / "runs" / "notes.html").write_text("notes")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "report.html").write_text("NOT FOR YOU")
    (folder / "out").symlink_to(tmp_path / "secret")
    (folder / "linked").mkdir()
    (folder / "linked" / "report.html").symlink_to(tmp_path / "secret" / "report.html")
    (folder / "chained").mkdir()
    (folder / "chained" / "report.html").symlink_to("../out/report.html")
    return folder


WRITTEN = "/written/runs/a%20%C3%BC%23/report.html"


def test_a_written_report_is_served_as_a_page_of_no_origin(folder: Path, out: Path) -> None:
    with visiting(out=out, folder=folder) as anna:
        assert "runs/a ü#/report.html" in anna.json("/api/home")["reports"]
        status, body, headers = anna.answer(WRITTEN)
        assert anna.answer(WRITTEN, Cookie="")[0] == 403
        assert anna.answer(WRITTEN, Origin="null")[0] == 403
    assert (status, body.decode(), headers["content-type"]) == (200, ATTACK, "text/html; charset=utf-8")
    policy = [part.strip() for part in headers["content-security-policy"].split(";")]
    assert policy[:2] == ["sandbox allow-scripts", "default-src 'none'"]
    assert "frame-ancestors 'none'" in policy
    assert (headers["x-content-type-options"], headers["cross-origin-resource-policy"]) == ("nosniff", "same-origin")


OUTSIDE = (
    *("../secret/report.html", "..%2Fsecret%2Freport.html", "runs/../../secret/report.html"),
    *("%2e%2e/secret/report.html", "a%5C..%5Creport.html", "/etc/report.html", "%2Fetc%2Freport.html", "{secret}"),
    *("out/report.html", "linked/report.html", "chained/report.html"),
    *("runs/notes.html", "runs", "", "report.html", "runs/a%20%C3%BC%23/report.html%00"),
)


def test_only_reports_below_the_folder_are_served(folder: Path, out: Path) -> None:
    secret = folder.parent / "secret" / "report.html"
    with visiting(out=out, folder=folder) as anna:
        for name in OUTSIDE:
            status, body, headers = anna.answer("/written/" + name.format(secret=quote(str(secret))))
            assert (status, b"NOT FOR YOU" in body) == (404, False), name
            assert "default-src 'none'" in headers["content-security-policy"]
    with visiting(out=out) as ben:  # no folder to look in
        assert ben.json("/api/home")["reports"] == []
        assert ben.answer(WRITTEN)[0] == 404


@pytest.mark.full
def test_a_hostile_report_cannot_read_the_studio(chromium: Browser, axe: str, folder: Path, out: Path) -> None:
    workspace = open_workspace([], person="anna", out=out, folder=folder)
    with studio_at(workspace) as address, chromium.new_context() as context:
        home = context.new_page()
        home.goto(address)
        link = home.get_by_role("link", name="runs/a ü#/report.html")
        expect(link).to_be_visible()
        assert serious_faults(home, axe) == []
        with context.expect_page() as opened:
            link.click()
        page = opened.value
        expect(page.locator("body[data-tried='9']")).to_be_attached()
        assert page.locator("#said").text_content() == ""
        assert page.evaluate("origin") == "null"
        assert len(context.pages) == 2
        page.evaluate("location.href = '/api/jobs'")
        expect(page.locator("body")).to_contain_text("refused")
        assert Visitor(address).json("/api/jobs") == {"jobs": []}


@pytest.mark.full
def test_a_report_of_ours_can_be_looked_through(chromium: Browser, asked_data: Path, tmp_path: Path, out: Path) -> None:
    folder = tmp_path / "work"
    evaluate(asked_data, task="activity", model="chance", repetitions=1, out=folder / "runs")
    write_report(load_results([folder / "runs"]).runs, folder / "report")
    workspace = open_workspace([], person="anna", out=out, folder=folder)
    with studio_at(workspace) as address, chromium.new_context() as context:
        home = context.new_page()
        home.goto(address)
        with context.expect_page() as opened:
            home.get_by_role("link", name="report/report.html").click()
        watched = Watched(opened.value)
        watched.page.locator(SHOWN).first.wait_for()
        watched.page.get_by_role("link", name="activity", exact=True).first.click()
        watched.page.locator(".tile a").first.click()
        expect(watched.page.locator(".card").first).to_be_visible()
        assert not watched.console
