# SPDX-License-Identifier: GPL-2.0
#
# awk -f trace.awk what=TEXT SIZES TRACE: makes a trace for rabench of "INODE
# BYTES" lines and of what the tracepoints mm_filemap_get_pages and
# mm_filemap_fault said. A read that takes several turns to get its pages is one
# read, and reads of as many pages that follow each other are one line.
FNR == 1 { file++ }

file == 1 {
	size[sprintf("%x", $1)] = $2
	next
}

function flush()
{
	if (times)
		line[++n] = nr " " page " " count (times > 1 ? " " times : "")
	times = 0
}

# Sets the number of the file that the event is about, and its pages.
function parse(	f, ofs)
{
	match($0, /ino=[0-9a-f]+ ofs=[-0-9]+/)
	if (RSTART == 0)
		return 0
	split(substr($0, RSTART, RLENGTH), f, /[ =]/)
	if (!(f[2] in size) || !size[f[2]])
		return 0
	if (!(f[2] in number)) {
		number[f[2]] = ++files
		bytes[files] = size[f[2]]
	}
	this = number[f[2]]
	split(f[4], ofs, "-")
	first = int(ofs[1] / 4096)
	last = int(ofs[2] / 4096)
	return 1
}

/mm_filemap_get_pages:/ && parse() {
	if (times && this == nr && last == page + count * times - 1 &&
	    first > page + count * (times - 1))
		next
	if (times && this == nr && last - first + 1 == count &&
	    first == page + count * times) {
		times++
		next
	}
	flush()
	nr = this
	page = first
	count = last - first + 1
	times = 1
}

/mm_filemap_fault:/ && parse() {
	flush()
	line[++n] = this " " first " fault"
}

END {
	flush()
	print "# " what
	for (i = 1; i <= files; i++)
		print "file " bytes[i]
	for (i = 1; i <= n; i++)
		print line[i]
}
