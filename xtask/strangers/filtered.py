"""Runs a program behind a long list of system calls that are compared one by one (seccomp's oldest form)."""
import ctypes, os, struct, sys

libc = ctypes.CDLL(None, use_errno=True)
rows = [struct.pack("HBBI", 0x20, 0, 0, 0)]
for number in range(1000, 1000 + 900):
    rows.append(struct.pack("HBBI", 0x15, 0, 1, number))
    rows.append(struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))
# The first argument is looked at too, so that the kernel cannot remember the answer.
rows.append(struct.pack("HBBI", 0x20, 0, 0, 16))
rows.append(struct.pack("HBBI", 0x15, 0, 1, 0xFFFFFFF0))
rows.append(struct.pack("HBBI", 0x06, 0, 0, 0x00050001))
rows.append(struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))
code = ctypes.create_string_buffer(b"".join(rows))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code)))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program, 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execvp(sys.argv[1], sys.argv[1:])
