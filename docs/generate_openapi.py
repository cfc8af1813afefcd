"""Write `dashboard/openapi.json`: the manager's API, from which the dashboard's types are made.

    .venv/bin/python docs/generate_openapi.py

A test compares the file with what this would write.
"""

import json
import tempfile
from pathlib import Path

from unlinkabledfl.manager import Settings, create_app
from unlinkabledfl.manager.settings import new_token

FILE = Path(__file__).parents[1] / "dashboard" / "openapi.json"


def render() -> str:
    """Return the schema as it stands in the file."""
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(Settings(runs=Path(folder), token=new_token(), page=Path(folder)))
        return json.dumps(app.openapi(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(render(), encoding="utf-8")
