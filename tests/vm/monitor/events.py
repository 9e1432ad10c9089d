#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""events.py SOURCE SPEC COUNT: YNL of a kernel source, subscribed to the events.

Prints COUNT of them as the library decodes them, a line of JSON each.
"""

import json
import select
import sys

sys.path.insert(0, sys.argv[1] + "/tools/net/ynl")
from lib import YnlFamily  # noqa: E402  pylint: disable=wrong-import-position

family = YnlFamily(sys.argv[2], "")
family.ntf_subscribe("events")
print("subscribed", flush=True)
for _ in range(int(sys.argv[3])):
    while not family.async_msg_queue:
        select.select([family.sock], [], [])
        family.check_ntf()
    event = family.async_msg_queue.pop(0)
    print(json.dumps(event, default=lambda b: b.hex()), flush=True)
