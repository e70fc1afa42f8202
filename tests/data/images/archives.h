#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/image/pictures.h"

/// Archives and pictures for tests.
namespace stretto::data::test {

/// A small PNG; other seeds give other pixels.
inline std::string png(uint8_t seed, int64_t height = 4, int64_t width = 6) {
  image::Image picture = image::test::gradient(height, width);
  for (auto& pixel : picture.pixels) pixel = static_cast<uint8_t>(pixel + seed);
  return image::test::png_of(picture);
}

struct Member {
  std::string name;
  std::string bytes = {};
  std::string link = {};  ///< what a symbolic link leads to
  bool is_folder = false;
};

enum class TarForm { kPax, kGnu };

/// The bytes of an archive, written by libarchive.
inline std::string tar_of(const std::vector<Member>& members, TarForm form = TarForm::kPax,
                          bool is_packed = false) {
  std::string out;
  archive* tar = archive_write_new();
  if (form == TarForm::kPax) archive_write_set_format_pax(tar);
  if (form == TarForm::kGnu) archive_write_set_format_gnutar(tar);
  if (is_packed) archive_write_add_filter_gzip(tar);
  const auto write = [](archive* /*tar*/, void* to, const void* bytes, size_t size) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), size);
    return static_cast<la_ssize_t>(size);
  };
  archive_write_open(tar, &out, nullptr, write, nullptr);
  for (const auto& member : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, member.name.c_str());
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_filetype(entry, member.is_folder ? AE_IFDIR : AE_IFREG);
    archive_entry_set_size(entry, static_cast<int64_t>(member.bytes.size()));
    if (!member.link.empty()) {
      archive_entry_set_filetype(entry, AE_IFLNK);
      archive_entry_set_symlink(entry, member.link.c_str());
    }
    if (archive_write_header(tar, entry) < ARCHIVE_WARN) {
      throw std::runtime_error(archive_error_string(tar));
    }
    archive_write_data(tar, member.bytes.data(), member.bytes.size());
    archive_entry_free(entry);
  }
  archive_write_close(tar);
  archive_write_free(tar);
  return out;
}

/// A number as idx files have it: 32 bits, the highest byte first.
inline std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFFU);
  return bytes;
}

inline std::string idx_images(uint32_t count, uint32_t height, uint32_t width,
                              const std::string& pixels) {
  return big_endian(0x803) + big_endian(count) + big_endian(height) + big_endian(width) + pixels;
}
inline std::string idx_labels(const std::string& labels) {
  return big_endian(0x801) + big_endian(static_cast<uint32_t>(labels.size())) + labels;
}

/// A record of CIFAR-10: a label, and the same value in all pixels of a plane.
inline std::string cifar10_record(char label, char red, char green, char blue) {
  return std::string(1, label) + std::string(1024, red) + std::string(1024, green) +
         std::string(1024, blue);
}

}  // namespace stretto::data::test
