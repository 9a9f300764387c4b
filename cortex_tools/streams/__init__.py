"""Streams between stages: lines, segments and their seals (docs/streams.md)."""
