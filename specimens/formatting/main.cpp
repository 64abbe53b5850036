// Lines of a report: a number, an amount, a measure and a word.
//
// defect:   a string stream with manipulators puts each line together.
// repaired: the same bytes by std::to_chars and memcpy into a buffer on the stack.
#include "harness.h"
#include <charconv>
#include <iomanip>
#include <sstream>
#include <string>

static const int LINES = 100;

struct row {
    long long number;
    long long cents;
    unsigned measure;
};

static std::string line_by_stream(const row &r) {
    std::ostringstream out;
    out << "number=" << std::setw(10) << std::setfill('0') << r.number << " amount=" << r.cents / 100 << '.'
        << std::setw(2) << r.cents % 100 << " measure=0x" << std::hex << r.measure << " state=" << "settled" << '\n';
    return out.str();
}

static char *put_text(char *at, const char *text, size_t length) {
    return (char *)memcpy(at, text, length) + length;
}

static char *put_padded(char *at, long long value, int width) {
    char digits[24];
    char *end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    for (int missing = width - (int)(end - digits); missing > 0; missing--)
        *at++ = '0';
    return put_text(at, digits, (size_t)(end - digits));
}

static size_t line_by_chars(const row &r, char *line) {
    char *at = put_text(line, "number=", 7);
    at = put_padded(at, r.number, 10);
    at = put_text(at, " amount=", 8);
    at = put_padded(at, r.cents / 100, 1);
    *at++ = '.';
    at = put_padded(at, r.cents % 100, 2);
    at = put_text(at, " measure=0x", 11);
    at = std::to_chars(at, at + 16, r.measure, 16).ptr;
    at = put_text(at, " state=settled\n", 15);
    return (size_t)(at - line);
}

// Both sides must make the same bytes, or the comparison is void.
static void check_equal(const row &r) {
    char line[128];
    size_t length = line_by_chars(r, line);
    if (line_by_stream(r) != std::string(line, length)) {
        fprintf(stderr, "the sides differ: %.*s", (int)length, line);
        exit(1);
    }
}

static row row_of(long long number) {
    row r = {number, number * 37 % 1000003, (unsigned)(number * 2654435761u)};
    return r;
}

int main(int count, char **words) {
    run_begin(count, words);
    for (long long number = 0; number < 1000; number++)
        check_equal(row_of(number));
    char line[128];
    size_t bytes = 0;
    long long done = 0;
    run_start();
    while (!run_over) {
        for (int i = 0; i < LINES; i++)
            bytes += run_repaired ? line_by_chars(row_of(done + i), line) : line_by_stream(row_of(done + i)).size();
        run_keep(line);
        done += LINES;
    }
    run_keep(&bytes);
    return run_end(done);
}
