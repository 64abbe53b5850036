// Look-ups of customers by their key.
//
// defect:   the index is a balanced tree: each look-up compares some fifteen keys, all alike in their first letters.
// repaired: the index is a hash table: each look-up hashes the key once and compares one.
#include "harness.h"
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

// Some 4 MB with nodes and keys: it stays in the last cache, so that comparing is what is paid for.
static const int CUSTOMERS = 20000;
// Look-ups between two looks at the clock's flag.
static const int LOOKUPS = 1000;

static std::vector<std::string> keys;

static std::string key_of(int customer) {
    char text[96];
    snprintf(text, sizeof text, "region/europe/branch/northern/customer/account-number/%010d", customer * 7919);
    return text;
}

static long long find_in_tree(const std::map<std::string, long long> &index, unsigned long long *chance) {
    long long sum = 0;
    for (int i = 0; i < LOOKUPS; i++)
        sum += index.find(keys[run_random(chance) % CUSTOMERS])->second;
    return sum;
}

static long long find_in_hash(const std::unordered_map<std::string, long long> &index, unsigned long long *chance) {
    long long sum = 0;
    for (int i = 0; i < LOOKUPS; i++)
        sum += index.find(keys[run_random(chance) % CUSTOMERS])->second;
    return sum;
}

int main(int count, char **words) {
    run_begin(count, words);
    std::map<std::string, long long> tree;
    std::unordered_map<std::string, long long> hash;
    for (int customer = 0; customer < CUSTOMERS; customer++) {
        keys.push_back(key_of(customer));
        if (run_repaired)
            hash[keys.back()] = customer;
        else
            tree[keys.back()] = customer;
    }
    unsigned long long chance = 2463534242ULL;
    long long done = 0, sum = 0;
    run_start();
    while (!run_over) {
        sum += run_repaired ? find_in_hash(hash, &chance) : find_in_tree(tree, &chance);
        done += LOOKUPS;
    }
    run_keep(&sum);
    return run_end(done);
}
