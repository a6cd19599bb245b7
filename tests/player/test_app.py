"""What the page asks for, and what it is answered; and what nobody else is."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

import numpy as np
import pages
import pytest
from starlette.testclient import TestClient

from neurise import exact
from neurise.modeling.by_tokens import Group
from neurise.player.app import STATIC, make_app
from neurise.player.asking import Tally
from neurise.player.guard import MOST_BYTES
from neurise.player.stage import Stage
from neurise.player.wishes import read_row


@pytest.fixture(scope="module")
def clients() -> Any:
    made = {}

    def client(stage: Stage) -> TestClient:
        if id(stage) not in made:
            app = make_app(stage, token=pages.TOKEN, hosts={pages.HOST})
            made[id(stage)] = (
                TestClient(app, base_url=f"http://{pages.HOST}", raise_server_exceptions=False),
                app.workers,
            )
        return made[id(stage)][0]

    yield client
    for _, workers in made.values():
        workers.end()


def ask(client: TestClient, name: str, **fields: Any) -> list[dict[str, Any]]:
    answer = client.post(f"/{pages.TOKEN}/api/{name}", json=fields)
    assert answer.status_code == 200, answer.text
    found = []
    for event in answer.text.split("\n\n"):
        kind = next((line[7:] for line in event.splitlines() if line.startswith("event: ")), "")
        data = next((line[6:] for line in event.splitlines() if line.startswith("data: ")), "{}")
        if kind == "failed":
            raise AssertionError(json.loads(data)["error"])
        found += [json.loads(data)] if kind == "result" else []
    assert "event: end" in answer.text
    return found


# --- what is answered ----------------------------------------------------------------------------------------------------


def test_the_page_loads_nothing_from_elsewhere(clients: Any) -> None:
    client = clients(pages.potts())
    page = client.get(f"/{pages.TOKEN}/")
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    for file in STATIC.iterdir():
        answer = client.get(f"/{pages.TOKEN}/static/{file.name}")
        assert answer.status_code == 200
        text = answer.text.replace("http://www.w3.org/", "")
        assert "http://" not in text
        assert "https://" not in text
        assert len(text.splitlines()) < 250
    assert "<script>" not in page.text
    assert "style=" not in page.text


def test_about_says_what_each_model_cannot_do_and_why(clients: Any) -> None:
    about = clients(pages.potts()).get(f"/{pages.TOKEN}/api/about").json()
    assert [model["name"] for model in about["models"]] == ["neurise", "d3pm", "independent"]
    neurise, d3pm, independent = about["models"]
    assert neurise["cannot"] == {}
    assert "cannot hold sites" in d3pm["cannot"]["hold"]
    assert "no steps" in independent["cannot"]["watch"]
    assert about["layout"]["kind"] == "graph" or about["layout"]["rows"] == 2
    assert about["symbols"] == [["0", "1", "2"]] * 4
    assert about["truth"]


def test_a_chain_that_is_watched_ends_in_the_rows_of_sample(clients: Any) -> None:
    stage = pages.potts()
    model = stage.actors[0].model
    begun, start, *steps = ask(clients(stage), "watch", chains=3, seed=4)
    assert begun == {"kind": "begun"}
    rows = np.array(start["tokens"])
    for step in (step for part in steps for step in part["steps"]):
        assert all(abs(sum(p for _, p in law) - 1) < 1e-3 for law in step["p"])
        rows[np.arange(3), step["s"]] = step["x"]
    np.testing.assert_array_equal(rows, model.sample(3, seed=4))


def test_joint_chains_and_forward_noise_can_be_watched(clients: Any) -> None:
    client, stage = clients(pages.potts()), pages.potts()
    *_, last = ask(client, "watch", model="d3pm", seed=1)
    np.testing.assert_array_equal(last["steps"][-1]["all"], stage.actor("d3pm").model.sample(1, seed=1))
    _, start, *steps = ask(client, "watch", direction="forward", row=[0, 1, 2, 0], chains=2)
    assert start["tokens"] == [[0, 1, 2, 0]] * 2
    assert [step["t"] for part in steps for step in part["steps"]] == [1, 2, 3, 4]


def test_marginals_given_what_is_held_are_those_of_the_exact_law(clients: Any) -> None:
    stage = pages.potts()
    last = ask(clients(stage), "ask", clamp={"1": 2, "3": 0}, rows=2**15, seed=5)[-1]
    law = exact.law(stage.actors[0].model).numpy().reshape(3, 3, 3, 3)[:, 2, :, 0]
    law /= law.sum()
    for site, marginal in ((0, law.sum(1)), (2, law.sum(0))):
        # Errors are told with four digits. Of 6 numbers, one is off by 4.5 errors once in 20,000 runs; the seed is fixed.
        error = np.array(last["error"][site]) + 1e-4
        assert (np.abs(np.array(last["mean"][site]) - marginal) < 4.5 * error).all()
        assert (error < 0.02).all()
    assert last["mean"][1] == [0, 0, 1]
    assert last["done"] == 1
    assert last["effective"] > 1000


def test_compared_models_are_measured_against_the_exact_law(clients: Any) -> None:
    stage = pages.potts()
    found = ask(clients(stage), "compare", rows=1000)
    kinds = [part["kind"] for part in found if part["kind"] != "progress"]
    assert kinds[0] == "reference"
    reference = found[0]
    assert reference["of"] == "the exact law"
    entries = {part["name"]: part for part in found if part["kind"] == "entry"}
    assert set(entries) == {"neurise", "d3pm", "independent", "data"}
    pmf = stage.data.pmf
    best = [int(np.ravel_multi_index(top["row"], (3,) * 4)) for top in reference["top"]]
    assert [top["p"] for top in reference["top"]] == pytest.approx(sorted(pmf)[: -len(best) - 1 : -1])
    rows = stage.actors[0].model.sample(1000, seed=0)
    shares = np.bincount(np.ravel_multi_index(rows.T, (3,) * 4), minlength=81) / 1000
    assert entries["neurise"]["tv"] == pytest.approx(np.abs(shares - pmf).sum() / 2)
    assert entries["neurise"]["top"] == pytest.approx(shares[best])
    own = next(part for part in found if part["kind"] == "exact" and part["name"] == "neurise")
    assert own["top"] == pytest.approx(exact.law(stage.actors[0].model).numpy()[best])
    assert sum(reference["energy"]["heights"]) == pytest.approx(1, abs=1e-3)


def test_a_model_that_cannot_hold_sites_is_greyed_out_with_the_reason(clients: Any) -> None:
    found = ask(clients(pages.potts()), "compare", clamp={"0": 1}, rows=200)
    greyed = [part for part in found if part["kind"] == "greyed"]
    assert [part["name"] for part in greyed] == ["d3pm"]
    assert "cannot hold sites" in greyed[0]["reason"]
    assert all(row[0] == 1 for part in found if part["kind"] == "entry" for row in part["rows"])


def test_a_row_is_scored_with_its_neighbours_and_changes(clients: Any) -> None:
    stage = pages.potts()
    score, nearest, changes = ask(clients(stage), "score", row=[0, 1, 2, 0])
    model = stage.actors[0].model
    assert score["log_prob"] == pytest.approx(model.log_prob(np.array([[0, 1, 2, 0]]))[0])
    assert sum(score["surprise"]) == pytest.approx(-score["log_prob"])
    assert nearest["rows"][0]["apart"] == min(row["apart"] for row in nearest["rows"])
    best = changes["changes"][0]
    changed = np.array([[0, 1, 2, 0]])
    changed[0, best["site"]] = best["token"]
    assert model.log_prob(changed)[0] - score["log_prob"] == pytest.approx(best["gain"], abs=1e-6)


def test_couplings_come_with_errors_and_with_the_truth(clients: Any) -> None:
    found = ask(clients(pages.potts()), "couplings")[-1]
    assert len(found["couplings"]) == len(found["errors"]) == len(found["truth"]) == 4
    again = ask(clients(pages.potts()), "couplings")
    assert [part["kind"] for part in again] == ["couplings"]  # kept


def test_samples_are_a_file_of_the_users_symbols(clients: Any) -> None:
    client, stage = clients(pages.labelled()), pages.labelled()
    answer = client.post(f"/{pages.TOKEN}/api/samples", json={"rows": 20, "clamp": {"1": 0}, "label": 1})
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert rows[0] == stage.names
    assert len(rows) == 21
    assert {row[1] for row in rows[1:]} == {stage.symbols[1][0]}
    assert {row[0] for row in rows[1:]} <= {"f", "m"}


def test_columns_of_a_table_and_labels_are_shown(clients: Any) -> None:
    client, stage = clients(pages.labelled()), pages.labelled()
    about = client.get(f"/{pages.TOKEN}/api/about").json()
    assert about["layout"]["kind"] == "table"
    assert about["labels"] == ["no", "yes"]
    assert about["data"] is None
    assert ask(client, "ask", label=0, clamp={"0": 1}, rows=64)[-1]["kind"] == "marginals"
    row = client.post(f"/{pages.TOKEN}/api/read", json={"text": "m, Rome"}).json()["row"]
    assert [stage.symbols[site][token] for site, token in enumerate(row)] == ["m", "Rome"]
    assert ask(client, "score", row=row)[0]["log_prob"] < 0
    assert ask(client, "compare", rows=100)[0]["of"] is None


@pytest.mark.parametrize("text", ["0120", "0,1,2,0", "0 1 2 0", "[0, 1, 2, 0]", "\n0\t1\t2\t0\n", "0;1;2;0"])
def test_rows_are_read_as_they_are_written(text: str) -> None:
    assert read_row(pages.potts(), text) == [0, 1, 2, 0]


# --- what is refused -----------------------------------------------------------------------------------------------------

BAD: dict[str, tuple[str, Any, int, str]] = {
    "no JSON": ("ask", b"{", 400, "JSON"),
    "bytes": ("ask", b"\xff\xfe", 400, "JSON"),
    "a list": ("ask", [], 400, "got list"),
    "a tower": ("ask", b"[" * 100_000, 400, ""),
    "unknown model": ("ask", {"model": "../../etc/passwd"}, 404, "there is no model"),
    "a model that is a list": ("ask", {"model": []}, 404, "there is no model"),
    "a seed of letters": ("ask", {"seed": "x"}, 400, "seed must be"),
    "a negative seed": ("ask", {"seed": -1}, 400, "seed must be"),
    "a huge seed": ("ask", {"seed": 10**30}, 400, "seed must be"),
    "a label without labels": ("ask", {"label": 0}, 400, "without labels"),
    "too many chains": ("watch", {"chains": 10**9}, 400, "chains must be"),
    "no such site": ("ask", {"clamp": {"4": 0}}, 400, "sites are 0 to 3"),
    "a site of digits of another script": ("ask", {"clamp": {"٣": 0}}, 400, "sites are 0 to 3"),
    "a huge site": ("ask", {"clamp": {"9" * 5000: 0}}, 400, "sites are 0 to 3"),
    "no such token": ("ask", {"clamp": {"0": 3}}, 400, "tokens 0 to 2"),
    "a token that is true": ("ask", {"clamp": {"0": True}}, 400, "tokens 0 to 2"),
    "a clamp that is a list": ("ask", {"clamp": [1]}, 400, "clamp must be"),
    "a short row": ("score", {"row": [0]}, 400, "list of 4 tokens"),
    "no row": ("score", {}, 400, "list of 4 tokens"),
    "too many rows": ("compare", {"rows": 10**9}, 400, "rows must be"),
    "too many models": ("compare", {"models": ["neurise"] * 99}, 400, "one to eight"),
    "a wrong direction": ("watch", {"direction": "up"}, 400, "must be one of"),
    "no chain": ("watch", {"model": "independent"}, 400, "no steps to show"),
    "no such question": ("nothing", {}, 404, "nothing at"),
    "no text": ("read", {"text": 3}, 400, "text must be"),
    "a text without a row": ("read", {"text": " \n"}, 400, "no row"),
    "a long text": ("read", {"text": "0" * 1000}, 400, "1000 symbols"),
    "an unknown symbol": ("read", {"text": "01x0"}, 400, "'x' at site 2"),
    "too many samples": ("samples", {"rows": 10**7}, 400, "rows must be"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_requests_are_answered_with_a_message_and_nothing_is_lost(clients: Any, name: str) -> None:
    client = clients(pages.potts())
    path, body, status, message = BAD[name]
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = client.post(f"/{pages.TOKEN}/api/{path}", content=content)
    if answer.status_code == 200:  # a stream that has begun tells its error as an event
        event, data = answer.text.split("\n\n")[-2].split("\n")
        assert event == "event: failed"
        error = json.loads(data.removeprefix("data: "))["error"]
    else:
        assert answer.status_code == status, answer.text
        error = answer.json()["error"]
    assert message in error
    assert "Traceback" not in error
    assert client.get(f"/{pages.TOKEN}/api/alive").status_code == 200


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {}, 403),
        ("/api/about", {}, 403),
        ("/wrong/api/about", {}, 403),
        (f"/{pages.TOKEN}x/api/about", {}, 403),
        (f"/{pages.TOKEN}", {}, 403),
        (f"/{pages.TOKEN}/api/about", {"host": "evil.example"}, 400),
        (f"/{pages.TOKEN}/api/about", {"host": "127.0.0.1"}, 400),
        (f"/{pages.TOKEN}/api/about", {"origin": "http://evil.example"}, 403),
        (f"/{pages.TOKEN}/api/about", {"origin": "null"}, 403),
        (f"/{pages.TOKEN}/api/about", {"origin": "https://127.0.0.1:1"}, 403),
        (f"/{pages.TOKEN}/api/about", {"origin": f"http://{pages.HOST}"}, 200),
        (f"/{pages.TOKEN}/static/../app.py", {}, 404),
        (f"/{pages.TOKEN}/static/..%2fapp.py", {}, 404),
        (f"/{pages.TOKEN}/static/%2fetc%2fpasswd", {}, 404),
        (f"/{pages.TOKEN}/static/nothing.js", {}, 404),
        (f"/{pages.TOKEN}/elsewhere", {}, 404),
        (f"/{pages.TOKEN}/api/training", {}, 404),
        (f"/{pages.TOKEN}/api/read", {}, 405),
    ],
)
def test_others_are_not_answered(clients: Any, path: str, headers: dict[str, str], status: int) -> None:
    answer = clients(pages.potts()).get(path, headers=headers)
    assert answer.status_code == status
    if status != 200:
        assert answer.json()["error"]
        assert "content-security-policy" in answer.headers


def test_large_requests_are_cut_off(clients: Any) -> None:
    client = clients(pages.potts())
    announced = client.post(f"/{pages.TOKEN}/api/read", content=b"x" * (MOST_BYTES + 1))
    assert announced.status_code == 413
    streamed = client.post(f"/{pages.TOKEN}/api/read", content=iter([b"x" * 2**17] * 10))
    assert streamed.status_code == 413
    assert client.get(f"/{pages.TOKEN}/api/alive").status_code == 200


def test_groups_of_particles_count_by_their_size_and_weight() -> None:
    """Written out: 10 particles at weight 3 and 30 at weight 1 count alike, and two groups are worth what their errors say."""
    tally = Tally(2)
    tally.add(Group(np.array([[0], [1]] * 5), effective=8.0, log_weight=math.log(3)))
    tally.add(Group(np.array([[1]] * 30), effective=24.0, log_weight=0.0))
    mean, error, worth = tally.result()
    np.testing.assert_allclose(mean, [[0.25, 0.75]])
    assert worth == pytest.approx(1 / (0.25 / 8 + 0.25 / 24))
    np.testing.assert_allclose(error, np.sqrt(0.25 * 0.75 / worth))
