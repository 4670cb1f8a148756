// The CRC-32 of files, as zlib computes it.
#pragma once

#include <cstdint>
#include <span>

namespace okforest {

// The checksum of bytes that follow others with this checksum; of the first bytes it is 0.
std::uint32_t crc32(std::span<const std::uint8_t> bytes, std::uint32_t before);

}  // namespace okforest
