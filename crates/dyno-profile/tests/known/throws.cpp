// 60 and 40 % of its rounds in two functions of a namespace, and an exception thrown through both at the end of each.
#include <cstdint>
#include <stdexcept>

namespace shop {

template <uint64_t Constant> __attribute__((noinline)) uint64_t spin(uint64_t rounds) {
    uint64_t state = Constant;
    for (uint64_t i = 0; i < rounds; i++) {
        state = state * 6364136223846793005u + Constant;
        __asm__ volatile("" : "+r"(state));
    }
    return state;
}

struct Till {
    uint64_t taken = 0;
    __attribute__((noinline)) void sixty(uint64_t rounds) {
        taken += spin<1442695040888963407u>(6 * rounds);
        throw std::runtime_error("sixty");
    }
    __attribute__((noinline)) void forty(uint64_t rounds) {
        taken += spin<3037000493u>(4 * rounds);
        throw std::runtime_error("forty");
    }
};

} // namespace shop

int main() {
    shop::Till till;
    for (;;) {
        try {
            till.sixty(100000);
        } catch (const std::exception &) {
        }
        try {
            till.forty(100000);
        } catch (const std::exception &) {
        }
    }
}
