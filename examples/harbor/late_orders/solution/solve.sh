#!/bin/bash
cat > late.py <<'END'
import csv
import sys

today = sys.argv[1]
late = {row["customer"] for row in csv.DictReader(sys.stdin) if (row["shipped"] or today) > row["due"]}
print(*sorted(late), sep="\n")
END
