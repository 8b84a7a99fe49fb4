"""Pictures of pages for the docs: few colours, so that a file is small."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.sync_api import Page

COLOURS: Final = 160
"""In a picture: a page has few, and a file of few is a third of the size."""


def taken(page: Page, part: str = "") -> Image.Image:
    """A picture of the page or of a part."""
    data = page.locator(part).first.screenshot() if part else page.screenshot()
    return Image.open(io.BytesIO(data)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)


HEIGHT_MAX: Final = 900
"""Of the pictures of tasks: a list may be long."""


def saved(page: Page, path: Path) -> None:
    """A picture of the page without its side bar, in a file."""
    path.parent.mkdir(exist_ok=True)
    image = taken(page, "main")
    image.crop((0, 0, image.width, min(image.height, HEIGHT_MAX))).save(path, optimize=True)
