"""Put a measured frontier into the package: the document of `reproduce frontier --out DIR`, less its rows.

.venv/bin/python docs/store_frontier.py DIR/frontier.json
"""

import json
import sys
from pathlib import Path

STORED = Path(__file__).resolve().parent.parent / "src/unlinkabledfl/experiment/linking/frontier.json"
LEFT_OUT = ("board", "configurations")


def main(path: Path) -> None:
    """Copy what `tune` reads, and what says how it was measured."""
    document = json.loads(path.read_text(encoding="utf-8"))
    kept = {key: value for key, value in document.items() if key not in LEFT_OUT}
    STORED.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
