#!/bin/bash
if PYTHONPATH=/app python3 -m unittest discover -s /tests -p 'test_*.py'; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
