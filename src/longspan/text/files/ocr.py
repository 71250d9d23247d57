"""Text recognition: the words in a picture, by the program tesseract if it is installed."""

import os
import shutil
import subprocess

from longspan.text.files.parsed import Refusal

PROGRAM = "tesseract"
INSTALL = "Install it: apt install tesseract-ocr, or brew install tesseract."
SECONDS = 120
"""For one picture."""
KEPT = ("PATH", "HOME", "LANG", "TESSDATA_PREFIX", "SYSTEMROOT")
"""What the program may know of the environment."""


def recognize(picture: bytes, languages: str) -> str:
    """The text in a picture: a PNG, JPEG, TIFF, BMP, WebP or PNM file.

    The program inherits the limits of this process, reads a pipe and writes a pipe.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise Refusal(f"recognizing text in pictures needs {PROGRAM}", INSTALL)
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    try:
        result = subprocess.run(
            [program, "stdin", "stdout", "-l", languages],
            input=picture,
            capture_output=True,
            timeout=SECONDS,
            env=environment | {"OMP_THREAD_LIMIT": "1"},
        )
    except subprocess.TimeoutExpired:
        raise Refusal(f"{PROGRAM} took longer than {SECONDS} seconds for a page") from None
    except OSError as error:
        raise Refusal(f"{PROGRAM} could not be started ({error})", INSTALL) from None
    if result.returncode:
        reason = " ".join(result.stderr[:400].decode("utf-8", "replace").split())
        raise Refusal(f"{PROGRAM} failed ({reason or f'status {result.returncode}'})")
    return result.stdout.decode("utf-8", "replace").replace("\f", "").replace("\r\n", "\n").strip()
