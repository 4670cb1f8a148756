// The choice of the instruction set.
#include <string_view>

#include "core/kernels.hpp"

namespace okforest {

namespace baseline {
extern const Kernels level_kernels;
}
#ifdef OKFOREST_X86
namespace avx2 {
extern const Kernels level_kernels;
}
namespace avx512 {
extern const Kernels level_kernels;
}
#endif

namespace {

// The best level up to the given one that this machine can run.
const Kernels* best_level(std::string_view most) {
#ifdef OKFOREST_X86
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
                        __builtin_cpu_supports("popcnt");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (has_avx512 && most != "avx2" && most != "baseline") return &avx512::level_kernels;
  if (has_avx2 && most != "baseline") return &avx2::level_kernels;
#else
  (void)most;
#endif
  return &baseline::level_kernels;
}

const Kernels*& chosen() {
  static const Kernels* level = best_level("");
  return level;
}

}  // namespace

const Kernels& kernels() { return *chosen(); }

bool choose_kernels(std::string_view level) {
  const Kernels* const found = best_level(level);
  if (!level.empty() && found->level != level) return false;
  chosen() = found;
  return true;
}

}  // namespace okforest
