#!/bin/bash
python3 - <<'END'
import sqlite3

with sqlite3.connect("store.db") as table:
    table.execute("delete from moves where id not in (select min(id) from moves group by item, amount, at)")
    table.execute("create table stock as select item, sum(amount) as amount from moves group by item having sum(amount) <> 0")
END
