#pragma once

#include <cstdint>
#include <string_view>

namespace stretto::report {

/// CRC-32C (Castagnoli, polynomial 0x1EDC6F41, reflected), RFC 3720 appendix B.4:
/// crc32c("123456789") = 0xE3069283.
uint32_t crc32c(std::string_view bytes);

/// The mask that TFRecord files put over a CRC, so that a CRC of data that holds CRCs stays a good
/// one: rotate right by 15 bits, add 0xA282EAD8.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace stretto::report
