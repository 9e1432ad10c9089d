# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# A process with much anonymous memory: it fills PAGES strings of a page each,
# which have its NAME in them and no other process has, then goes through them
# ROUNDS times, back and forth. A page must be what it was left as; then it is
# changed. WAIT is the name of a fifo: it reads a line from there between filling
# and looking.

function content(at, round) {
	return substr(text, (at * 31 + round * 17) % 4000 + 1, 4000) NAME at " " round
}

function look(at, round) {
	if (page[at] == content(at, round))
		return
	print "page " at " has changed in round " round
	failed = 1
	exit 1
}

BEGIN {
	while (length(text) < 8000) {
		x = (x * 69069 + 12345) % 2147483648
		text = text x
	}
	for (i = 0; i < PAGES; i++)
		page[i] = content(i, 0)
	print "filled" >(WAIT ".filled")
	close(WAIT ".filled")
	getline <WAIT
	for (round = 1; round <= ROUNDS; round++)
		for (i = 0; i < PAGES; i++) {
			at = round % 2 ? i : PAGES - 1 - i
			look(at, round - 1)
			page[at] = content(at, round)
		}
	exit
}

END {
	if (failed)
		exit 1
	for (i = 0; i < PAGES; i++)
		look(i, ROUNDS)
	print PAGES " pages, " ROUNDS " rounds"
}
