# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# From events of the block layer: has each request of the devices completed once?
# The first file has the devices, MAJOR:MINOR, the second one the trace.
#
# A request with a flush before it is a sequence: the block layer issues a request
# of its own for the flush (FF), one for all that wait, then the data, without the
# flush's letter. Each of these is issued and completes as others do. At last it ends
# the request itself, which had been issued in these parts only: a completion of no
# sectors, which has no issue to be compared with. FUA is a letter of a write.

FNR == NR {
	sub(/:/, ",")
	watched[$1] = 1
	next
}

match($0, /block_rq_[a-z]+: /) {
	event = substr($0, RSTART + 9, RLENGTH - 11)
	n = split(substr($0, RSTART + RLENGTH), word, " ")
	if (!(word[1] in watched))
		next
	for (i = 3; i < n && word[i] != "+"; i++)
		;
	key = word[1] " " word[2] " " word[i - 1] " + " word[i + 1]
	# it has no sector, and some events say 0 and some -1
	if (word[2] ~ /^FF/)
		key = word[1] " flush"
	else if (event == "complete" && word[i + 1] == "0")
		next
	events[event]++
	if (event == "issue") {
		under[key]++
	} else if (event == "complete" && under[key] < 1 && word[n] != "[0]") {
		# a disk without a path fails what it is given, and issues none of it
		refused++
	} else if (--under[key] < 0) {
		print event " of what is not under way: " $0
		bad = 1
	}
}

END {
	for (key in under)
		if (under[key] > 0) {
			print "has not completed: " key
			bad = 1
		}
	print events["issue"] + 0 " issued, " events["requeue"] + 0 \
		" taken back, " events["complete"] + 0 " completed, " \
		refused + 0 " of them refused"
	exit bad || !events["complete"]
}
