"""Static files: only those of the manifest."""

from __future__ import annotations

from pathlib import Path

import pytest
from sites import Site

from rota.admin import static


@pytest.mark.parametrize(
    "path",
    [
        "/../routes.py", "/..%2froutes.py", "/%2e%2e/routes.py", "/%2e%2e%2froutes.py",
        "/%252e%252e%252froutes.py", "/..\\routes.py", "/..%5croutes.py", "/index.html%00.js", "/%00",
        "//etc/passwd.js", "/%2fetc%2fpasswd.x",
        "/.git/config", "/index.html/", "/dashboard/index.html", "/api/docs/../application.py",
        "/api/docs/%2e%2e%2fapplication.py",
    ],
)  # fmt: skip
def test_file_outside_the_manifest_is_not_found(site: Site, path: str) -> None:
    answer = site.get(path)
    assert answer.status == 404 and answer.code == "no_such_path"


def test_symlinks_and_unknown_types_are_not_in_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("fine")
    (tmp_path / "secret.py").write_text("no")
    (tmp_path / "link.js").symlink_to("/etc/passwd")
    assert list(static.manifest(tmp_path)) == ["page.html"]
