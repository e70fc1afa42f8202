#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/bad_samples.h"
#include "data/byte_stream.h"

/// Files of pixels as they are: idx, which MNIST comes in, and the binary versions of CIFAR.
namespace stretto::data {

/// Pictures of one size.
struct PixelArray {
  int64_t count = 0, height = 0, width = 0;
  int64_t channels = 1;     ///< 1 grey, 3 red, green and blue
  std::string pixels;       ///< [count, channels, height, width] of bytes
  std::vector<int> labels;  ///< [count], empty of an idx file of pictures
  std::vector<int64_t>
      rows;  ///< [count]: their numbers in the file, from 0, where some were left out

  int64_t bytes_of_one() const { return channels * height * width; }
};

/// The most bytes of one such file: it is held in memory.
inline constexpr uint64_t kMostPixelBytes = uint64_t{4} << 30;

/// An idx file of pictures: bytes 0 0 8 3, then count, height and width, 32 bits each with the
/// highest byte first, then the pixels.
/// @param name  for messages
/// Throws Error(kBadData) for another header, and for more or fewer bytes than it says.
PixelArray read_idx_images(ByteStream& bytes, const std::string& name);

/// An idx file of labels: bytes 0 0 8 1, the count, at most 2^28, then a byte for each. Throws as
/// read_idx_images().
std::vector<int> read_idx_labels(ByteStream& bytes, const std::string& name);

enum class CifarKind : uint8_t {
  kCifar10,   ///< records of 1 + 3072 bytes, labels 0 to 9
  kCifar100,  ///< of 1 + 1 + 3072: a coarse label, which is not read, and a fine one, 0 to 99
};
/// Pictures of 32 x 32 in one file of a binary version. A record with a label beyond the last one
/// is a bad sample. Throws as BadSamples, and Error(kBadData) for a file that does not end with a
/// record.
PixelArray read_cifar(ByteStream& bytes, const std::string& name, CifarKind kind, BadSamples& bad);

}  // namespace stretto::data
