#include "data/images/pixel_files.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "image/image_file.h"

namespace stretto::data {
namespace {

constexpr uint32_t kIdxImages = 0x00000803, kIdxLabels = 0x00000801;
constexpr const char* kIdxAdvice =
    "an idx file of pictures begins with the bytes 0 0 8 3 and one of labels with 0 0 8 1, as "
    "MNIST's do; fetch it again";
// Packed, a few megabytes would become gigabytes.
constexpr int64_t kMostIdxLabels = int64_t{1} << 28;
constexpr int64_t kCifarSide = 32, kCifarPixels = 3 * kCifarSide * kCifarSide;

[[noreturn]] void refuse_pixels(const std::string& name, const std::string& what,
                                const char* advice) {
  throw Error(ExitCode::kBadData, name + ": " + what, advice);
}

/// Up to `capacity` bytes, fewer only at the end.
size_t read_fully(ByteStream& bytes, char* buffer, size_t capacity) {
  size_t done = 0;
  while (done < capacity) {
    const size_t got = bytes.read(buffer + done, capacity - done);
    if (got == 0) break;
    done += got;
  }
  return done;
}

/// The magic number and `count` numbers behind it.
template <size_t count>
std::array<uint32_t, count> idx_header(ByteStream& bytes, const std::string& name, uint32_t magic) {
  std::array<unsigned char, 4 * (count + 1)> header{};
  if (read_fully(bytes, reinterpret_cast<char*>(header.data()), header.size()) != header.size()) {
    refuse_pixels(name, "is too short for the header of an idx file", kIdxAdvice);
  }
  const auto number = [&](size_t i) {
    return static_cast<uint32_t>(header[4 * i]) << 24U |
           static_cast<uint32_t>(header[4 * i + 1]) << 16U |
           static_cast<uint32_t>(header[4 * i + 2]) << 8U | header[4 * i + 3];
  };
  if (number(0) != magic) {
    refuse_pixels(name,
                  number(0) == (magic == kIdxImages ? kIdxLabels : kIdxImages)
                      ? "is an idx file of " + std::string(magic == kIdxImages
                                                               ? "labels, pictures are needed here"
                                                               : "pictures, labels are needed here")
                      : "has another header than an idx file of " +
                            std::string(magic == kIdxImages ? "pictures" : "labels"),
                  kIdxAdvice);
  }
  std::array<uint32_t, count> numbers{};
  for (size_t i = 0; i < count; ++i) numbers[i] = number(i + 1);
  return numbers;
}

/// Exactly so many bytes, and no more. Memory is taken as they come.
std::string idx_body(ByteStream& bytes, const std::string& name, uint64_t size) {
  constexpr size_t kStep = size_t{1} << 22;
  std::string body;
  while (body.size() < size) {
    const size_t begin = body.size();
    body.resize(begin + std::min<uint64_t>(kStep, size - begin));
    const size_t got = read_fully(bytes, body.data() + begin, body.size() - begin);
    if (begin + got < body.size()) {
      refuse_pixels(name,
                    "its header says " + with_thousands(static_cast<int64_t>(size)) +
                        " bytes of data, and it has " +
                        with_thousands(static_cast<int64_t>(begin + got)),
                    kIdxAdvice);
    }
  }
  char more = 0;
  if (bytes.read(&more, 1) != 0) {
    refuse_pixels(name,
                  "has more bytes than the " + with_thousands(static_cast<int64_t>(size)) +
                      " of data that its header says",
                  kIdxAdvice);
  }
  return body;
}

}  // namespace

PixelArray read_idx_images(ByteStream& bytes, const std::string& name) {
  const auto [count, height, width] = idx_header<3>(bytes, name, kIdxImages);
  const std::string shape =
      std::to_string(count) + " x " + std::to_string(height) + " x " + std::to_string(width);
  if (count == 0 || height == 0 || width == 0) {
    refuse_pixels(name, "its header says " + shape + ": there are no pictures", kIdxAdvice);
  }
  const bool is_too_large = height > image::kMaxSide || width > image::kMaxSide ||
                            uint64_t{height} * width > kMostPixelBytes / count;
  if (is_too_large) {
    refuse_pixels(name,
                  "its header says " + shape + ", and such a file may have sides of " +
                      with_thousands(image::kMaxSide) + " and " + human_bytes(kMostPixelBytes),
                  "give so many pictures as folders or tar files");
  }
  if (uint64_t{height} * width > uint64_t{image::kMaxPixels}) {
    refuse_pixels(name,
                  "its header says " + shape + ", and a picture may have " +
                      with_thousands(image::kMaxPixels) + " pixels",
                  "make the pictures smaller");
  }
  PixelArray array{.count = count, .height = height, .width = width};
  array.pixels = idx_body(bytes, name, static_cast<uint64_t>(count * array.bytes_of_one()));
  return array;
}

std::vector<int> read_idx_labels(ByteStream& bytes, const std::string& name) {
  const auto [count] = idx_header<1>(bytes, name, kIdxLabels);
  if (count == 0) refuse_pixels(name, "its header says 0 labels", kIdxAdvice);
  if (count > kMostIdxLabels) {
    refuse_pixels(name,
                  "its header says " + with_thousands(count) +
                      " labels, and such a file may have " + with_thousands(kMostIdxLabels),
                  kIdxAdvice);
  }
  const std::string body = idx_body(bytes, name, count);
  std::vector<int> labels;
  labels.reserve(body.size());
  for (const char label : body) labels.push_back(static_cast<unsigned char>(label));
  return labels;
}

PixelArray read_cifar(ByteStream& bytes, const std::string& name, CifarKind kind, BadSamples& bad) {
  const size_t num_labels = kind == CifarKind::kCifar10 ? 1 : 2;
  const int most = kind == CifarKind::kCifar10 ? 9 : 99;
  const size_t size = num_labels + kCifarPixels;
  PixelArray array{.height = kCifarSide, .width = kCifarSide, .channels = 3};
  std::string record(size, '\0');
  for (int64_t row = 0;; ++row) {
    const size_t got = read_fully(bytes, record.data(), size);
    if (got == 0) break;
    if (got < size || array.pixels.size() > kMostPixelBytes) {
      refuse_pixels(name,
                    got < size
                        ? "its last record has " + counted(static_cast<int64_t>(got), "byte") +
                              ", one has " + std::to_string(size)
                        : "has more than " + human_bytes(kMostPixelBytes),
                    "fetch the binary version of CIFAR again: cifar-10-binary.tar.gz, "
                    "cifar-100-binary.tar.gz");
    }
    const int label = static_cast<unsigned char>(record[num_labels - 1]);
    if (label > most) {
      bad.add({name,
               ": picture " + std::to_string(row) + " has label " + std::to_string(label) +
                   ", the last one is " + std::to_string(most),
               "look whether data.format is that of the file"});
      continue;
    }
    array.pixels.append(record, num_labels, kCifarPixels);
    array.labels.push_back(label);
    array.rows.push_back(row);
  }
  bad.end_file();
  array.count = static_cast<int64_t>(array.labels.size());
  return array;
}

}  // namespace stretto::data
