#include "files/crc32.hpp"

#include <array>
#include <bit>
#include <cstring>

#ifdef OKFOREST_X86
#include <immintrin.h>
#endif

namespace okforest {

namespace {

constexpr std::uint32_t kPolynomial = 0xEDB88320;

// tables[k][b]: the checksum of byte b followed by k zeros.
constexpr auto kTables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) * kPolynomial);
    tables[0][b] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::uint32_t b = 0; b < 256; ++b) {
      const std::uint32_t crc = tables[k - 1][b];
      tables[k][b] = (crc >> 8) ^ tables[0][crc & 255];
    }
  }
  return tables;
}();

// Eight bytes at a time.
std::uint32_t by_tables(std::span<const std::uint8_t> bytes, std::uint32_t crc) {
  if constexpr (std::endian::native == std::endian::little) {
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
      std::uint64_t word;
      std::memcpy(&word, bytes.data(), 8);
      word ^= crc;
      crc = 0;
      for (int k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 255];
    }
  }
  for (const std::uint8_t byte : bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ byte) & 255];
  return crc;
}

#ifdef OKFOREST_X86

// A vector of 128 bits times a constant, plus more bits.
__attribute__((target("pclmul,sse4.1"))) inline __m128i fold(__m128i x, __m128i factors,
                                                             __m128i more) {
  const __m128i low = _mm_clmulepi64_si128(x, factors, 0x00);
  const __m128i high = _mm_clmulepi64_si128(x, factors, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), more);
}

// 64 bytes at a time by carry-less products: V. Gopal et al., "Fast CRC computation for generic
// polynomials using PCLMULQDQ instruction", Intel, 2009. The length is a multiple of 16, and at
// least 64.
__attribute__((target("pclmul,sse4.1"))) std::uint32_t by_products(
    std::span<const std::uint8_t> bytes, std::uint32_t crc) {
  const auto load = [&](std::size_t k) __attribute__((target("pclmul,sse4.1"), always_inline)) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes.data()) + k);
  };
  const __m128i by_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i by_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  __m128i a = _mm_xor_si128(load(0), _mm_cvtsi32_si128(static_cast<int>(crc)));
  __m128i b = load(1), c = load(2), d = load(3);
  for (bytes = bytes.subspan(64); bytes.size() >= 64; bytes = bytes.subspan(64)) {
    a = fold(a, by_64, load(0));
    b = fold(b, by_64, load(1));
    c = fold(c, by_64, load(2));
    d = fold(d, by_64, load(3));
  }
  a = fold(fold(fold(a, by_16, b), by_16, c), by_16, d);
  for (; bytes.size() >= 16; bytes = bytes.subspan(16)) a = fold(a, by_16, load(0));
  // 128 bits to 64, and these to 32 by Barrett's method.
  const __m128i low = _mm_setr_epi32(-1, 0, -1, 0);
  a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, by_16, 0x10));
  const __m128i by_4 = _mm_set_epi64x(0, 0x163cd6124);
  a = _mm_xor_si128(_mm_srli_si128(a, 4), _mm_clmulepi64_si128(_mm_and_si128(a, low), by_4, 0x00));
  const __m128i barrett = _mm_set_epi64x(0x1f7011641, 0x1db710641);
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(a, low), barrett, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low), barrett, 0x00);
  return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(a, quotient), 1));
}

bool has_products() {
  static const bool has = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  }();
  return has;
}

#endif

}  // namespace

std::uint32_t crc32(std::span<const std::uint8_t> bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
#ifdef OKFOREST_X86
  if (bytes.size() >= 64 && has_products()) {
    const std::size_t n = bytes.size() / 16 * 16;
    crc = by_products(bytes.first(n), crc);
    bytes = bytes.subspan(n);
  }
#endif
  return ~by_tables(bytes, crc);
}

}  // namespace okforest
