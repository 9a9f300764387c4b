"""The retrieval benchmark: labels, measuring the production code on them, metrics, the report and its plot."""

SCHEMA = "lifeos-cortex-benchmark/v1"
