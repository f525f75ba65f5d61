"""The page of large runs in a headless Chromium: its size, its first paint, and the time of a frame."""
