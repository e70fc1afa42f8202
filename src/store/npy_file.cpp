#include "store/npy_file.h"

#include <bit>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace stretto::store {

static_assert(std::endian::native == std::endian::little, "values are written as they lie");

namespace {

constexpr size_t kHeaderBytes = 128;
constexpr std::string_view kMagic{"\x93NUMPY\x01\x00", 8};  // then uint16: bytes of the rest

}  // namespace

std::string npy_header(int64_t rows, int64_t columns) {
  const std::string shape = "(" + std::to_string(rows) + ", " + std::to_string(columns) + ")";
  std::string header(kMagic);
  constexpr size_t kRest = kHeaderBytes - kMagic.size() - 2;
  header += {static_cast<char>(kRest & 0xff), static_cast<char>(kRest >> 8)};
  header += "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(kHeaderBytes - 1, ' ');
  return header + "\n";
}

NpyFile::NpyFile(std::filesystem::path path, int64_t columns)
    : file_(std::move(path)), columns_(columns) {
  file_.write(npy_header(0, columns));
}

void NpyFile::append(std::span<const float> values) {
  const auto count = static_cast<int64_t>(values.size());
  if (count % columns_ != 0) throw std::invalid_argument("[npy] a part of a row");
  file_.write({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  rows_ += count / columns_;
}

void NpyFile::finish() {
  file_.write_at(0, npy_header(rows_, columns_));
  file_.publish();
}

}  // namespace stretto::store
