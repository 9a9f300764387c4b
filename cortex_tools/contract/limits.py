"""Every bound of the contract, in one place (sections 4, 5 and 10).

Lengths of text are UTF-16 code units; sizes of files and payloads are bytes.
"""

CORPUS_FILES = 10_000
FILE_BYTES = 8 * 1024 * 1024
CORPUS_BYTES = 128 * 1024 * 1024
RECORDS = 50_000

QUERY_UNITS = 2_048
QUERY_TERMS = 64
IDS = 100
PAYLOAD_BYTES = 262_144

PAGE = 2**53 - 1
PAGE_SIZE = 100
NEIGHBOURS = 100
JOBS = 64
EXPANSION_NODES = 100
EXPANSION_TOKENS = 50_000

DEFAULT_PAGE = 1
DEFAULT_PAGE_SIZE = 10
DEFAULT_NEIGHBOURS = 5
DEFAULT_EXPANSION_NODES = 10
DEFAULT_EXPANSION_TOKENS = 2_000

# Text as a stream (cortex-strip --text): what has hung on the text after it for so many characters is cut.
UNDECIDED = 1024 * 1024

# The most problems that cortex-check lists, and the most notices, in all and of one file; the rest is counted.
CHECK_ENTRIES = 1_000
CHECK_ENTRIES_OF_FILE = 100

# A corpus that changes while it is read is tried afresh this often before it is refused (section 14.10).
FRESH_TRIES = 2

# The benchmark (docs/evidence.md).
LABELS = 1_000
LABEL_FILE_BYTES = 1024 * 1024
LABEL_ID_UNITS = 256
EXPECTED_IDS = 100
COMMAND_PARTS = 32
COMMAND_BYTES = 16_384
LATENCY_SAMPLES = 25
DISCLOSED = 5
PLOT_REPORTS = 1_000

# Governed writes (docs/writing.md).
CONTENT_UNITS = 65_536
TITLE_UNITS = 1_024
TARGET_UNITS = 4_096
SLUG_UNITS = 256
RELATED = 64
HOT_ENTRIES = 48
ENTRY_UNITS = 256
SNAPSHOTS = 30
LOCK_SECONDS = 5.0
LOCK_STALE_MS = 300_000
