"""Write the published JSON Schemas beside this file."""

from pathlib import Path

from schemas.publish import documents

if __name__ == "__main__":
    folder = Path(__file__).parent
    for name, text in documents().items():
        (folder / name).write_text(text, encoding="utf-8")
