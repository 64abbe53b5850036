/* A journal of small records on a disk.
 *
 * defect:   every record is a write of its own to a file opened with O_SYNC.
 * repaired: records are gathered and written 64 at a time; a record counts when it is on the disk, as before. */
#include "harness.h"
#include <fcntl.h>

#define RECORD_BYTES 256
#define GATHERED 64
/* The journal begins anew here, so that a long run does not fill a disk. */
#define JOURNAL_BYTES_MAX (16 << 20)

static int journal;
static char gathered[RECORD_BYTES * GATHERED];

static void make_record(char *record, long long number) {
    memset(record, ' ', RECORD_BYTES - 1);
    memcpy(record, "record ", 7);
    char *end = record + 27;
    do
        *--end = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    record[RECORD_BYTES - 1] = '\n';
}

static void append(const char *bytes, long long length) {
    static long long at;
    if (at + length > JOURNAL_BYTES_MAX)
        at = 0;
    if (pwrite(journal, bytes, (size_t)length, at) != length)
        run_fail("write the journal");
    at += length;
}

static long long write_each(void) {
    long long done = 0;
    while (!run_over) {
        make_record(gathered, done);
        append(gathered, RECORD_BYTES);
        done++;
    }
    return done;
}

static long long write_gathered(void) {
    long long done = 0;
    while (!run_over) {
        for (int i = 0; i < GATHERED; i++)
            make_record(gathered + i * RECORD_BYTES, done + i);
        append(gathered, sizeof gathered);
        done += GATHERED;
    }
    return done;
}

int main(int count, char **words) {
    run_begin(count, words);
    journal = open("journal.dat", O_CREAT | O_WRONLY | O_TRUNC | O_SYNC | O_CLOEXEC, 0600);
    if (journal < 0)
        run_fail("open the journal");
    run_start();
    return run_end(run_repaired ? write_gathered() : write_each());
}
